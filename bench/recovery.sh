#!/bin/bash
# Memory of and recovery with many znodes, on one standalone server:
#   log:      N creates with snapshots off (snapCount huge), kill -9, time to the first
#             served request: replay of an N-transaction log;  then kill -9 and again
#             (Apache snapshots when it starts, so this one loads a snapshot);
#   default:  the same N creates with default settings, kill -9, restart.
# All nodes are read back and checked after each restart.  Prints JSON lines.
#
#   recovery.sh [--count 1000000] [--size 100]
# Env: ENGINE_CMD (see servers.sh), LOCK (see compare.sh).
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
base=${ZKBENCH_DIR:-${TMPDIR:-/tmp}/meerkat-bench}
count=1000000 size=100
while (($#)); do
  case $1 in
    --count|--size) declare "${1#--}=$2"; shift 2 ;;
    *) echo "unknown option $1" >&2; exit 1 ;;
  esac
done
name=recovery-$$ sv=$here/servers.sh
mkdir -p "$base"
exec 9> "${LOCK:-${TMPDIR:-/tmp}/measure.lock}"
flock 9
trap '"$sv" destroy "$name"' EXIT
export READY_LIMIT=300

mem() { awk '/VmRSS/{r=$2} /VmHWM/{h=$2} END{printf "\"rss_mb\":%d,\"rss_peak_mb\":%d", r/1024, h/1024}' "/proc/$("$sv" pids "$name")/status"; }
say() { echo "{\"step\":\"$1\",$(mem),\"disk_mb\":$(du -sm "$base/$name/0/data" | cut -f1),\"r\":$2}"; }
load() { "$base/bin/zkload" "$@" --hosts "$("$sv" hosts "$name")" --pids "$("$sv" pids "$name")" --count "$count" --size "$size" --conns 16 --depth 32 9>&-; }
bounce() {
  "$sv" kill "$name" 0
  t0=$(date +%s%N)
  "$sv" restart "$name" 0 9>&-
  say "$1" "$("$sv" ready "$name" "$t0")"
  say "$1-verify" "$(load verify)"
}

EXTRA_CFG=snapCount=2000000000 "$sv" start-standalone "$name" 24000 9>&- > /dev/null
say empty '{}'
say log-fill "$(load fill)"
bounce log-restart
bounce second-restart
"$sv" destroy "$name"
"$sv" start-standalone "$name" 24000 9>&- > /dev/null
say default-fill "$(load fill)"
bounce default-restart
