#!/bin/bash
# Proves that zkload notices wrong servers: runs it through a proxy that injects one
# fault at a time; each must give exit status 2, and no fault must give 0.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
base=${ZKBENCH_DIR:-${TMPDIR:-/tmp}/meerkat-bench}
name=selftest-$$ sv=$here/servers.sh bad=0
trap '"$sv" destroy "$name"; [ -z "${proxy:-}" ] || kill "$proxy" 2>/dev/null || true' EXIT
"$sv" start-standalone "$name" 24500 > /dev/null
try() { # FAULT EXPECTED_STATUS zkload arguments
  local fault=$1 want=$2 rc=0
  shift 2
  node "$here/faulty-proxy.mjs" 24600 24500 "$fault" &
  proxy=$!
  until (exec 3<> /dev/tcp/127.0.0.1/24600) 2> /dev/null; do sleep 0.05; done
  "$base/bin/zkload" "$@" --hosts 127.0.0.1:24600 > "$base/$name/out" 2> "$base/$name/err" || rc=$?
  kill "$proxy"
  wait "$proxy" 2> /dev/null || true
  proxy=
  if ((rc == want)); then echo "ok      $1 $fault: exit $rc $(grep -m1 VIOLATION "$base/$name/err" || true)"
  else echo "NOT OK  $1 $fault: exit $rc, expected $want"; cat "$base/$name/err"; bad=1; fi
}
load=(load --conns 3 --depth 4 --nodes 10 --size 100 --read 50 --warmup 0 --secs 0.5)
try none 0 "${load[@]}"
for f in xid zxid error swap payload short stale mzxid reset; do try "$f" 2 "${load[@]}"; done
try drop 2 load --conns 1 --depth 1 --nodes 10 --size 100 --read 50 --warmup 0 --secs 0.5 --drain 2
try none 0 watchfan --watchers 20 --rounds 20
try event 2 watchfan --watchers 20 --rounds 20
try none 0 failover --conns 1 --secs 2
try lostwrite 2 failover --conns 1 --secs 2
exit $bad
