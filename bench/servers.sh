#!/bin/bash
# Starts and stops server instances on loopback for the benchmarks.
#
#   servers.sh start-standalone NAME BASEPORT       one server
#   servers.sh start-ensemble N NAME BASEPORT       N servers (3, 5, ...)
#   servers.sh stop NAME                            TERM, then KILL after 10 s
#   servers.sh destroy NAME                         stop and delete its data
#   servers.sh kill NAME IDX                        kill -9 one server (0-based)
#   servers.sh restart NAME IDX|all                 start it again on its data, no wait
#   servers.sh hosts|pids NAME                      comma-separated, for zkload
#   servers.sh ready NAME [T0]                      waits; JSON with ms since T0 (epoch ns)
#   servers.sh leader NAME                          index of the leader (asks `srvr`)
#   servers.sh build                                compiles zkload and fsyncrate
#
# An "engine" is any program that serves a standard zoo.cfg: ENGINE_CMD is its
# command line with {cfg} for the path of the file ({heap} for $HEAP, {dir} for
# the server's own folder, {id} for its myid), e.g.
#   ENGINE_CMD='node dist/server.js {cfg}' servers.sh start-ensemble 3 mine 26000
# It must run in the foreground; it is exec'ed (so `env X=1 prog`, not `X=1 prog`).
# Default: Apache ZooKeeper of Debian.  The command is kept with the instance, so
# ENGINE_CMD matters to the start commands only.
#
# Client ports are BASEPORT+i, quorum ports BASEPORT+100+i, election BASEPORT+200+i.
# Env: ZKBENCH_DIR (data, default meerkat-bench below $TMPDIR or /tmp), HEAP (Java heap, 4g), EXTRA_CFG (more
# lines for zoo.cfg, e.g. 'forceSync=no'), READY_LIMIT (seconds to wait, 60).
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
base=${ZKBENCH_DIR:-${TMPDIR:-/tmp}/meerkat-bench}
bin=$base/bin
apache='java -Xmx{heap} -cp /usr/share/java/zookeeper.jar org.apache.zookeeper.server.quorum.QuorumPeerMain {cfg}'

die() { echo "servers.sh: $*" >&2; exit 1; }

build() {
  mkdir -p "$bin"
  local p
  for p in zkload fsyncrate; do
    [ "$bin/$p" -nt "$here/$p.cc" ] || g++ -O2 -std=c++17 -Wall -o "$bin/$p" "$here/$p.cc"
  done
}

write_cfg() { # NAME N BASEPORT
  local name=$1 n=$2 port=$3 i j d
  for ((i = 0; i < n; i++)); do
    d=$base/$name/$i
    mkdir -p "$d/data"
    echo $((i + 1)) > "$d/data/myid"
    {
      echo "tickTime=2000"
      echo "initLimit=10"
      echo "syncLimit=5"
      echo "dataDir=$d/data"
      echo "clientPort=$((port + i))"
      echo "clientPortAddress=127.0.0.1"
      echo "maxClientCnxns=0"
      echo "4lw.commands.whitelist=*"
      echo "admin.enableServer=false"
      if ((n > 1)); then
        for ((j = 0; j < n; j++)); do
          echo "server.$((j + 1))=127.0.0.1:$((port + 100 + j)):$((port + 200 + j))"
        done
      fi
      [ -z "${EXTRA_CFG:-}" ] || printf '%s\n' "$EXTRA_CFG"
    } > "$d/zoo.cfg"
  done
}

launch() { # NAME IDX: starts one server in its own session, keeps its pid
  local d=$base/$1/$2 cmd
  cmd=$(cat "$base/$1/cmd")
  cmd=${cmd//\{cfg\}/$d/zoo.cfg}
  cmd=${cmd//\{dir\}/$d}
  cmd=${cmd//\{id\}/$(($2 + 1))}
  cmd=${cmd//\{heap\}/${HEAP:-4g}}
  # exec twice: the recorded pid is the engine itself
  setsid bash -c "echo \$\$ > '$d/pid'; exec $cmd" > "$d/log" 2>&1 < /dev/null &
  disown
  while [ ! -s "$d/pid" ]; do sleep 0.01; done
}

count() { ls -d "$base/$1"/[0-9]* | wc -l; }
alive() { [ -s "$base/$1/$2/pid" ] && kill -0 "$(cat "$base/$1/$2/pid")" 2>/dev/null; }

start() { # N NAME BASEPORT
  local n=$1 name=$2 port=$3 i t0
  [ -d "$base/$name" ] && die "$name exists: destroy it first"
  build
  mkdir -p "$base/$name"
  echo "${ENGINE_CMD:-$apache}" > "$base/$name/cmd"
  echo "$port" > "$base/$name/port"
  write_cfg "$name" "$n" "$port"
  t0=$(date +%s%N)
  for ((i = 0; i < n; i++)); do launch "$name" "$i"; done
  wait_ready "$name" 1 "$t0" || { tail -n 5 "$base/$name"/*/log >&2; stop "$name"; die "$name did not get ready"; }
}

hosts() {
  local n port i out=()
  n=$(count "$1"); port=$(cat "$base/$1/port")
  for ((i = 0; i < n; i++)); do out+=("127.0.0.1:$((port + i))"); done
  (IFS=,; echo "${out[*]}")
}

pids() {
  local i out=()
  for ((i = 0; i < $(count "$1"); i++)); do if alive "$1" "$i"; then out+=("$(cat "$base/$1/$i/pid")"); fi; done
  (IFS=,; echo "${out[*]}")
}

# Waits until all servers that run answer, and one accepts a write; prints JSON with
# the milliseconds since T0 (epoch ns, default: now) of each server.
wait_ready() { # NAME WRITE [T0]
  "$bin/zkload" ready --hosts "$(hosts "$1")" --limit "${READY_LIMIT:-60}" --write "$2" --t0 "${3:-0}"
}

stop() {
  local i p
  [ -d "$base/$1" ] || return 0
  for ((i = 0; i < $(count "$1"); i++)); do
    if alive "$1" "$i"; then kill "$(cat "$base/$1/$i/pid")" 2>/dev/null || true; fi
  done
  for ((i = 0; i < $(count "$1"); i++)); do
    for p in $(seq 100); do if alive "$1" "$i"; then sleep 0.1; else break; fi; done
    if alive "$1" "$i"; then kill -9 "$(cat "$base/$1/$i/pid")" || true; fi
    rm -f "$base/$1/$i/pid"
  done
}

four_letter() { # PORT WORD
  (exec 3<>"/dev/tcp/127.0.0.1/$1" && printf %s "$2" >&3 && timeout 2 cat <&3) 2>/dev/null || true
}

leader() {
  local i port
  port=$(cat "$base/$1/port")
  for ((i = 0; i < $(count "$1"); i++)); do
    if four_letter $((port + i)) srvr | grep -qE '^Mode: (leader|standalone)'; then echo "$i"; return; fi
  done
  die "$1 has no leader"
}

case ${1:-help} in
  build) build ;;
  start-standalone) start 1 "$2" "$3" ;;
  start-ensemble) start "$2" "$3" "$4" ;;
  stop) stop "$2" ;;
  destroy) stop "$2"; rm -rf "${base:?}/${2:?}" ;;
  kill) p=$(cat "$base/$2/$3/pid"); kill -9 "$p"; while kill -0 "$p" 2>/dev/null; do sleep 0.01; done; rm -f "$base/$2/$3/pid" ;;
  restart)
    if [ "$3" = all ]; then for ((i = 0; i < $(count "$2"); i++)); do launch "$2" "$i"; done; else launch "$2" "$3"; fi ;;
  hosts) hosts "$2" ;;
  pids) pids "$2" ;;
  ready) wait_ready "$2" 1 "${3:-0}" ;;
  leader) leader "$2" ;;
  *) sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//;p}' "$0" ;;
esac
