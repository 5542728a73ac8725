#!/bin/bash
# Like the official ZooKeeper image, writes zoo.cfg and myid from the environment unless they exist, and runs the
# command.
set -e

# As root: gives the data directories to the user zookeeper and continues as that user. With "--user" the user is kept.
if [ "$1" = zkServer.sh ] && [ "$(id -u)" = 0 ]; then
    chown -R zookeeper "$ZOO_DATA_DIR" "$ZOO_DATA_LOG_DIR" "$ZOO_LOG_DIR"
    # Mounted files may be read-only.
    chown zookeeper "$ZOO_CONF_DIR" 2> /dev/null || true
    exec setpriv --reuid=zookeeper --regid=zookeeper --init-groups "$0" "$@"
fi

config=$ZOO_CONF_DIR/zoo.cfg
if [ ! -f "$config" ]; then
    {
        echo "dataDir=$ZOO_DATA_DIR"
        echo "dataLogDir=$ZOO_DATA_LOG_DIR"
        echo "tickTime=$ZOO_TICK_TIME"
        echo "initLimit=$ZOO_INIT_LIMIT"
        echo "syncLimit=$ZOO_SYNC_LIMIT"
        echo "autopurge.snapRetainCount=$ZOO_AUTOPURGE_SNAPRETAINCOUNT"
        echo "autopurge.purgeInterval=$ZOO_AUTOPURGE_PURGEINTERVAL"
        echo "maxClientCnxns=$ZOO_MAX_CLIENT_CNXNS"
        echo "standaloneEnabled=$ZOO_STANDALONE_ENABLED"
        echo "admin.enableServer=$ZOO_ADMINSERVER_ENABLED"
        # Servers are separated by spaces.
        for server in ${ZOO_SERVERS:-server.1=localhost:2888:3888;2181}; do echo "$server"; done
        if [ -n "$ZOO_4LW_COMMANDS_WHITELIST" ]; then echo "4lw.commands.whitelist=$ZOO_4LW_COMMANDS_WHITELIST"; fi
        for line in $ZOO_CFG_EXTRA; do echo "$line"; done
    } > "$config"
fi

if [ ! -f "$ZOO_DATA_DIR/myid" ]; then
    echo "${ZOO_MY_ID:-1}" > "$ZOO_DATA_DIR/myid"
fi

exec "$@"
