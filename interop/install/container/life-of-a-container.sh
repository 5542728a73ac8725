# Typical uses of the image. Each step prints one line: its name and the result.
say() { printf '%s: %s\n' "$1" "$2"; }
ip link set lo up
mount -t proc proc /proc
. "$root/image-environment"
# Like "docker run" and "docker exec": without this machine's environment, with the image's, then the container's.
container() { env -i "${image_environment[@]}" "$@"; }
run() { env -i "${image_environment[@]}" "$@" chroot "$root" docker-entrypoint.sh zkServer.sh start-foreground >> "$root/output" 2>&1 & }
inside() { container chroot "$root" "$@"; }
wait_until_healthy() {
  until inside zkServer.sh status > /dev/null 2>&1; do
    if ! kill -0 $server; then tail "$root/output"; exit 1; fi
    sleep 0.2
  done
}
flat() { paste -sd '|'; }

run
server=$!
wait_until_healthy
say 'zoo.cfg' "$(flat < "$root/conf/zoo.cfg")"
say myid "$(cat "$root/data/myid")"
say user "$(ps -o uid=,gid=,args= -p $server | xargs)"
say owner "$(stat -c %u:%g "$root/data/version-2" "$root/datalog/version-2" "$root/conf/zoo.cfg" | flat)"
say status "$(inside zkServer.sh status)"
say ruok "$(inside bash -c 'echo ruok | nc -w 2 localhost 2181')"
say create "$(inside zkCli.sh -server localhost:2181 create /greeting 'good morning' 2>&1)"
say admin "$(curl -s http://127.0.0.1:8080/commands/ruok | tr -d ' \n')"
kill $server
wait $server
say stopped "exit code $?; $(grep -c 'everything acknowledged is synced' "$root/output") graceful end"
inside zkServer.sh status > /dev/null 2>&1
say 'status of a stopped one' "exit code $?"

# Restarted with other variables: existing files are kept.
run ZOO_TICK_TIME=1000 ZOO_MY_ID=9
server=$!
wait_until_healthy
say again "$(inside zkCli.sh get /greeting); $(grep tickTime "$root/conf/zoo.cfg"); $(cat "$root/data/myid")"
kill $server
wait $server

# A read-only file of the user, and Java system properties.
rm "$root/conf/zoo.cfg"
printf 'dataDir=/data\ndataLogDir=/datalog\nclientPort=2182\n' > "$root/conf/zoo.cfg"
chmod 444 "$root/conf/zoo.cfg"
run JVMFLAGS='-Xmx512m -Dzookeeper.4lw.commands.whitelist=conf'
server=$!
wait_until_healthy
say 'own file' "$(inside zkServer.sh status); $(inside bash -c 'echo conf | nc -w 2 localhost 2182' | grep clientPort)"
kill $server
wait $server

# Three members, like three containers, with all variables.
members='server.1=127.0.0.1:2888:3888;127.0.0.1:2191 server.2=127.0.0.1:2889:3889;127.0.0.1:2192 server.3=127.0.0.1:2890:3890;127.0.0.1:2193'
pids=()
for id in 1 2 3; do
  for place in conf data datalog logs; do install -d -o 1000 -g 1000 "$root/member$id/$place"; done
  paths=(ZOO_CONF_DIR=/member$id/conf ZOO_DATA_DIR=/member$id/data ZOO_DATA_LOG_DIR=/member$id/datalog ZOO_LOG_DIR=/member$id/logs)
  run "${paths[@]}" ZOO_MY_ID=$id "ZOO_SERVERS=$members" ZOO_TICK_TIME=1000 ZOO_INIT_LIMIT=10 ZOO_SYNC_LIMIT=4 \
    ZOO_AUTOPURGE_SNAPRETAINCOUNT=5 ZOO_AUTOPURGE_PURGEINTERVAL=2 ZOO_MAX_CLIENT_CNXNS=0 ZOO_STANDALONE_ENABLED=false \
    ZOO_ADMINSERVER_ENABLED=false 'ZOO_4LW_COMMANDS_WHITELIST=srvr, mntr, ruok' 'ZOO_CFG_EXTRA=preAllocSize=1024 snapCount=5000'
  pids+=($!)
  if [ $id = 1 ]; then
    until [ -f "$root/member1/data/myid" ]; do sleep 0.1; done
    container ZOO_CONF_DIR=/member1/conf chroot "$root" zkServer.sh status > /dev/null 2>&1
    say 'member without a quorum' "exit code $?"
  fi
done
modes=()
for id in 1 2 3; do
  until mode=$(container ZOO_CONF_DIR=/member$id/conf chroot "$root" zkServer.sh status 2> /dev/null); do sleep 0.2; done
  modes+=("$mode")
done
say 'zoo.cfg of a member' "$(flat < "$root/member2/conf/zoo.cfg")"
say members "$(cat "$root"/member*/data/myid | flat) $(printf '%s\n' "${modes[@]}" | sort | flat)"
kill "${pids[@]}"
wait "${pids[@]}"
say 'members stopped' "exit code $?"
