#!/bin/sh
# Runs Meerkat's shell like ZooKeeper's: zkCli.sh [-server HOST:PORT] [command …]. It supports the same commands.
set -e
server=127.0.0.1:2181
if [ "${1:-}" = -server ]; then
    server=$2
    shift 2
fi
if [ $# = 0 ]; then exec meerkat shell --server "$server"; fi
line=
for word in "$@"; do line="$line '$word'"; done
exec meerkat shell --server "$server" --command "$line"
