#!/bin/bash
# Two upper bounds of this machine: the disk's fdatasync rate (C++ and Node.js) and a
# bare Node.js TCP server that only handles frames (echo.mjs), loaded by zkload.
# Prints JSON lines.  Env: LOCK (see compare.sh).
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
base=${ZKBENCH_DIR:-${TMPDIR:-/tmp}/meerkat-bench}
mkdir -p "$base"
"$here/servers.sh" build
exec 9> "${LOCK:-${TMPDIR:-/tmp}/measure.lock}"
flock 9
"$base/bin/fsyncrate" "$base/fsync.dat" 2 1024
node "$here/fsync.mjs" "$base/fsync.dat" 2 1024 1 100
node "$here/echo.mjs" 25999 9>&- &
echo_pid=$!
trap 'kill $echo_pid' EXIT
sleep 0.5
# name: request and reply bytes (besides 12 and 8 of framing), sessions, depth
while read -r name req rep conns depth; do
  printf '{"case":"%s","r":%s}\n' "$name" "$("$base/bin/zkload" echo --hosts 127.0.0.1:25999 --pids $echo_pid \
    --req-size "$req" --rep-size "$rep" --conns "$conns" --depth "$depth" --secs 4 --warmup 2)"
done <<END
echo-100b 100 100 32 16
echo-1k 1024 1024 32 16
read-like-1k 40 1100 32 16
read-like-100b 40 180 32 16
write-like-1k 1060 88 32 16
write-like-100b 140 88 32 16
many-300x2 40 1100 300 2
latency-1 40 1100 1 1
END
