#!/bin/bash
# Fake kubectl for the test of rolling-update.sh: a StatefulSet of three pods in files below $CLUSTER.
#
#     pods/<name>/{revision,uid}   leader   ready (number)   log (deleted pods)
case "$*" in
  *'.spec.replicas}'*) echo -n 3 ;;
  *'.status.updateRevision}'*) echo -n new ;;
  *'.status.readyReplicas}'*) cat "$CLUSTER/ready" ;;
  'get pod '*controller-revision-hash*) cat "$CLUSTER/pods/$3/revision" ;;
  'get pod '*metadata.uid*) cat "$CLUSTER/pods/$3/uid" ;;
  'exec '*) if [ "$2" = "$(cat "$CLUSTER/leader")" ]; then echo 'Mode: leader'; else echo 'Mode: follower'; fi ;;
  'delete pod '*)
    echo "$3" >> "$CLUSTER/log"
    echo -n new > "$CLUSTER/pods/$3/revision"
    echo -n "$3-again" > "$CLUSTER/pods/$3/uid"
    # An updated follower takes over.
    if [ "$3" = "$(cat "$CLUSTER/leader")" ]; then echo meerkat-0 > "$CLUSTER/leader"; fi
    if [ "$3" = "${BREAKS-}" ]; then echo 2 > "$CLUSTER/ready"; fi
    ;;
  'wait pod '*) ;;
  *)
    echo "kubectl $*: not known to this stand-in" >&2
    exit 1
    ;;
esac
