#!/bin/bash
# Kills a server of an ensemble under load (kill -9) and measures the longest time
# without an acknowledged write; then restarts it and checks on every server that no
# acknowledged write is lost.  Prints a Markdown table.
#
#   failover.sh [--trials 5] [--servers 3] [--victim leader|follower]
# Env: ENGINE_CMD (see servers.sh), OUT (raw JSON lines), LOCK (see compare.sh).
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
base=${ZKBENCH_DIR:-${TMPDIR:-/tmp}/meerkat-bench}
trials=5 servers=3 victim=leader
while (($#)); do
  case $1 in
    --trials|--servers|--victim) declare "${1#--}=$2"; shift 2 ;;
    *) echo "unknown option $1" >&2; exit 1 ;;
  esac
done
name=failover-$$ sv=$here/servers.sh
out=${OUT:-$base/failover-$victim-$(date +%H%M%S)-$$.jsonl}
mkdir -p "$base"
exec 9> "${LOCK:-${TMPDIR:-/tmp}/measure.lock}"
flock 9
trap '"$sv" destroy "$name"' EXIT
"$sv" start-ensemble "$servers" "$name" 23000 9>&- > /dev/null
hosts=$("$sv" hosts "$name")
# A JVM that has just started is slow: a short load first.
"$base/bin/zkload" load --hosts "$hosts" --conns 8 --depth 4 --read 50 --secs 6 --warmup 0 > /dev/null
get() { sed -n "s/.*\"$1\":\\([0-9.]*\\).*/\\1/p" "$base/$name/failover.json"; }

echo "| trial | killed | gap ms | worst client ms | gap began after kill, ms | acked | lost | rejoin ms |"
echo "| ---: | --- | ---: | ---: | ---: | ---: | ---: | ---: |"
for ((t = 1; t <= trials; t++)); do
  lead=$("$sv" leader "$name")
  if [ "$victim" = leader ]; then v=$lead; else v=$(((lead + 1) % servers)); fi
  "$base/bin/zkload" failover --hosts "$hosts" --conns "$servers" --secs 15 9>&- > "$base/$name/failover.json" &
  load=$!
  sleep 4
  killed=$(date +%s%3N)
  "$sv" kill "$name" "$v"
  sleep 7
  t0=$(date +%s%N)
  "$sv" restart "$name" "$v" 9>&-
  rejoin=$("$sv" ready "$name" "$t0" | sed 's/.*"ready_ms":\([0-9.]*\).*/\1/')
  rc=0
  wait "$load" || rc=$?
  cat "$base/$name/failover.json" >> "$out"
  echo "| $t | $v | $(get gap_ms) | $(get gap_worst_client_ms) | $(($(get gap_start_epoch_ms) - killed)) | $(get acked) | $(get lost) | $rejoin |"
  if ((rc)); then echo "FAILED: zkload exit status $rc" >&2; exit 2; fi
done
