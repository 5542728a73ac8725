#!/bin/bash
# Compares engine B with engine A on the workloads of workloads.txt, alternately and in
# short slices (A,B / B,A / A,B ...), so that drift of the machine affects both, and prints a
# Markdown table with the median of the pairwise ratios B/A and their range.
#
#   compare.sh [--pairs 4]     slices of each engine per workload, one after the other
#              [--restarts 2]  all that again with fresh servers and data
#              [--servers 1] [--secs 2] [--warmup 0.7] [--only REGEX of workload names]
#              [--engine-warmup 12]   seconds of mixed load after each start
#              [--solo]               engine A alone: a table of absolute figures
#
# Env: A_CMD, B_CMD: command templates as ENGINE_CMD in servers.sh (default: Apache),
#      A_NAME, B_NAME for the table, OUT for the raw results (JSON lines), LOCK: a file
#      that is flock'ed during each measurement, so that other jobs can keep away
#      (LOCK=/dev/null when the caller holds it already).
# Both engines run all the time; only one is under load.
# Any protocol violation seen by zkload ends the run with an error.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
base=${ZKBENCH_DIR:-${TMPDIR:-/tmp}/meerkat-bench}
lock=${LOCK:-${TMPDIR:-/tmp}/measure.lock}
pairs=4 restarts=2 servers=1 secs=2 warmup=0.7 engine_warmup=12 only=. engines="A B"
while (($#)); do
  case $1 in
    --solo) engines=A; shift ;;
    --engine-warmup) engine_warmup=$2; shift 2 ;;
    --pairs|--restarts|--servers|--secs|--warmup|--only) declare "${1#--}=$2"; shift 2 ;;
    *) echo "unknown option $1" >&2; exit 1 ;;
  esac
done
out=${OUT:-$base/compare-$(date +%H%M%S)-$$.jsonl}
sv=$here/servers.sh
declare -A name=([A]="cmp-a-$$" [B]="cmp-b-$$") port=([A]=22000 [B]=22500)
mkdir -p "$base"
"$sv" build
zkload=$base/bin/zkload
cleanup() { for e in $engines; do "$sv" destroy "${name[$e]}"; done; }
trap cleanup EXIT

record() { # PAIR ENGINE WORKLOAD JSON
  echo "{\"pair\":$1,\"engine\":\"$2\",\"workload\":\"$3\",\"load\":$(cut -d' ' -f1 /proc/loadavg),\"r\":$4}" >> "$out"
}
run() { # PAIR ENGINE WORKLOAD ARGS...
  local p=$1 e=$2 w=$3 j
  shift 3
  j=$("$zkload" "$@" --hosts "$("$sv" hosts "${name[$e]}")" --pids "$("$sv" pids "${name[$e]}")") ||
    { echo "FAILED: engine $e, workload $w: $j" >&2; exit 2; }
  record "$p" "$e" "$w" "$j"
}

for ((restart = 0; restart < restarts; restart++)); do
  order=$engines
  if ((restart % 2)) && [ "$engines" = "A B" ]; then order="B A"; fi
  for e in $order; do
    cmd=A_CMD
    [ "$e" = B ] && cmd=B_CMD
    (
      flock 9
      j=$(ENGINE_CMD=${!cmd:-} "$sv" start-ensemble "$servers" "${name[$e]}" "${port[$e]}" 9>&-)
      record "$restart" "$e" startup "$j"
      # Warm the engine up (a JVM needs it; same for all).
      "$zkload" load --hosts "$("$sv" hosts "${name[$e]}")" --warmup 0 --secs "$engine_warmup" --root /warm --conns 32 --depth 8 \
        --mix getData=6,setData=4,createdelete=1,exists=1,getChildren=1,multi=1 9>&- > /dev/null
    ) 9> "$lock"
  done
  while read -r w args; do
    case $w in '' | '#'*) continue ;; esac
    [[ $w =~ $only ]] || continue
    (
      flock 9
      for ((k = 0; k < pairs; k++)); do
        pair=$((restart * pairs + k)) order=$engines
        if ((k % 2)) && [ "$engines" = "A B" ]; then order="B A"; fi
        for e in $order; do
          # shellcheck disable=SC2086
          case $args in
            load*) run "$pair" "$e" "$w" ${args//\{n\}/$pair} --secs "$secs" --warmup "$warmup" 9>&- ;;
            *) run "$pair" "$e" "$w" ${args//\{n\}/$pair} 9>&- ;;
          esac
        done
      done
    ) 9> "$lock"
  done < "$here/workloads.txt"
  for e in $engines; do "$sv" destroy "${name[$e]}"; done
  echo "round $((restart + 1)) of $restarts done" >&2
done
echo "raw results: $out" >&2
node "$here/table.mjs" "$out" "${A_NAME:-A}" "${B_NAME:-B}"
