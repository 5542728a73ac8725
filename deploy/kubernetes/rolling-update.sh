#!/usr/bin/env bash
# Replaces the pods of the StatefulSet one by one, the leader last, so that leadership moves once. Continues only
# while all members are ready: a second one down would cost the quorum.
#
#     deploy/kubernetes/rolling-update.sh [--namespace NAME] [--statefulset NAME] [--timeout SECONDS]
set -euo pipefail
namespace=() statefulset=meerkat timeout=600
while [ $# -gt 0 ]; do
  case $1 in
    --namespace) namespace=(--namespace "$2") ;;
    --statefulset) statefulset=$2 ;;
    --timeout) timeout=$2 ;;
    *)
      sed -n '2,5s/^# \{0,1\}//p' "$0" >&2
      exit 2
      ;;
  esac
  shift 2
done
kube() { kubectl ${namespace[@]+"${namespace[@]}"} "$@"; }
revision_of() { kube get pod "$1" -o 'jsonpath={.metadata.labels.controller-revision-hash}'; }
role_of() { kube exec "$1" -- zkServer.sh status 2> /dev/null || true; }

replicas=$(kube get statefulset "$statefulset" -o 'jsonpath={.spec.replicas}')
wanted=$(kube get statefulset "$statefulset" -o 'jsonpath={.status.updateRevision}')

# All members must be ready before each replacement.
wait_for_all() {
  local deadline=$((SECONDS + timeout)) ready
  while :; do
    ready=$(kube get statefulset "$statefulset" -o 'jsonpath={.status.readyReplicas}')
    [ "${ready:-0}" != "$replicas" ] || return 0
    if [ $SECONDS -ge $deadline ]; then
      echo "after $timeout s only ${ready:-0} of $replicas members of $statefulset are ready: nothing more is restarted; see kubectl describe, and meerkat status" >&2
      exit 1
    fi
    sleep 2
  done
}

# Queried before each replacement: leadership may have moved.
next_pod() {
  local leader='' pod
  for ((i = replicas - 1; i >= 0; i--)); do
    pod=$statefulset-$i
    [ "$(revision_of "$pod")" != "$wanted" ] || continue
    if [ "$(role_of "$pod")" = 'Mode: leader' ]; then leader=$pod; else echo "$pod"; return; fi
  done
  echo "$leader"
}

while :; do
  wait_for_all
  pod=$(next_pod)
  if [ -z "$pod" ]; then break; fi
  echo "restarting $pod ($(role_of "$pod"))"
  old=$(kube get pod "$pod" -o 'jsonpath={.metadata.uid}')
  kube delete pod "$pod" --wait=true
  # Waits for the new pod first: the count of ready members may be stale.
  deadline=$((SECONDS + timeout))
  until new=$(kube get pod "$pod" -o 'jsonpath={.metadata.uid}' 2> /dev/null) && [ -n "$new" ] && [ "$new" != "$old" ]; do
    if [ $SECONDS -ge $deadline ]; then echo "$pod has not come back within $timeout s" >&2; exit 1; fi
    sleep 1
  done
  kube wait pod "$pod" --for=condition=Ready --timeout="${timeout}s"
done
echo "all $replicas members of $statefulset are of revision $wanted"
