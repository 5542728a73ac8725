#!/bin/sh
# The commands of ZooKeeper's zkServer.sh that are used in containers: start-foreground, status and version.
set -e
config=${ZOOCFG:-${ZOO_CONF_DIR:-/conf}/zoo.cfg}

# The client address: clientPort, or the part after ";" in this member's own line.
client_address() {
    port=$(sed -n 's/^clientPort=//p' "$config" | tail -n 1)
    address=$(sed -n 's/^clientPortAddress=//p' "$config" | tail -n 1)
    if [ -z "$port" ]; then
        id=$(cat "$(sed -n 's/^dataDir=//p' "$config" | tail -n 1)/myid" 2> /dev/null || echo 1)
        own=$(sed -n "s/^server\.$id=.*;//p" "$config" | tail -n 1)
        port=${own##*:}
        case $own in *:*) address=${own%:*} ;; esac
    fi
    case $address in '' | 0.0.0.0 | ::) address=127.0.0.1 ;; esac
    echo "$address:$port"
}

case ${1:-} in
    start-foreground) exec meerkat server "$config" ;;
    status)
        answer=$(meerkat 4lw srvr --server "$(client_address)" --timeout 5s 2>&1) || true
        mode=$(printf '%s\n' "$answer" | sed -n 's/^ *\(Mode: .*\)$/\1/p')
        if [ -z "$mode" ]; then
            printf 'no clients are served at %s: %s\n' "$(client_address)" "$answer" >&2
            exit 1
        fi
        echo "$mode"
        ;;
    version) exec meerkat --version ;;
    *)
        echo 'usage: zkServer.sh start-foreground | status | version; stop the container to stop the server' >&2
        exit 2
        ;;
esac
