# The life cycle of the package, from installation to purge. Each step prints one line: its name and the result.
say() { printf "%s: %s\n" "$1" "$2"; }
state() { systemctl show meerkat -p ActiveState -p StatusText --value | paste -sd ' '; }
wait_until_inactive() { while [ "$(systemctl show meerkat -p ActiveState --value)" != inactive ]; do sleep 0.1; done; }
named_after_it() { find /etc /opt /srv /usr /var -xdev -name '*meerkat*' -not -path '/var/cache/man/*' 2> /dev/null | sort; }
export DEBIAN_FRONTEND=noninteractive

ip link set lo up
named_after_it > /root/before

dpkg -i /root/package.deb > /root/dpkg 2>&1
say install "exit code $?"
say started "$(state)"
say enabled "$(systemctl is-enabled meerkat)"
say user "$(id -un "$(stat -c %u /var/lib/meerkat)") $(stat -c %a /var/lib/meerkat) $(stat -c '%G %a' /etc/meerkat)"
say process "$(ps -o user= -p "$(systemctl show meerkat -p MainPID --value)")"
say verify "$(systemd-analyze verify meerkat.service 2>&1)"
say exposure "$(systemd-analyze security meerkat.service --no-pager | sed -n 's/.*exposure level for meerkat.service: \([0-9.]*\).*/\1/p')"
say create "$(meerkat create /greeting hello)"
say ready "$(curl -s http://127.0.0.1:8080/readyz)"
say manual "$(man -w meerkat)"

systemctl restart meerkat
say restart "$(state); $(meerkat get /greeting)"
kill -9 "$(systemctl show meerkat -p MainPID --value)"
until [ "$(systemctl show meerkat -p ActiveState --value)" = active ] && [ "$(systemctl show meerkat -p NRestarts --value)" = 1 ]; do sleep 0.1; done
say killed "$(state); $(meerkat get /greeting)"
systemctl stop meerkat
say stop "$(systemctl show meerkat -p Result -p ExecMainStatus --value | paste -sd ' ')"
say journal "$(journalctl -u meerkat --no-pager | grep -c 'everything acknowledged is synced') graceful ends, $(journalctl -u meerkat --no-pager | grep -c 'cannot tell systemd') lost messages"

echo tickTime=soon >> /etc/meerkat/zoo.cfg
systemctl start meerkat 2> /dev/null
say 'bad configuration' "$(systemctl show meerkat -p ActiveState -p ExecMainStatus -p NRestarts --value | paste -sd ' ')"
sed -i '$d' /etc/meerkat/zoo.cfg
echo 'maxClientCnxns=77' >> /etc/meerkat/zoo.cfg
systemctl start meerkat
pid=$(systemctl show meerkat -p MainPID --value)
dpkg -i /root/package.deb > /root/dpkg 2>&1
say upgrade "exit code $?; $(state); $(meerkat get /greeting); $(grep -c '^maxClientCnxns=77' /etc/meerkat/zoo.cfg) line kept; $([ "$pid" = "$(systemctl show meerkat -p MainPID --value)" ] && echo same process || echo new process)"

# A member without a quorum: the start does not wait forever for the others.
printf 'server.1=127.0.0.1:2888:3888\nserver.2=127.0.0.1:2889:3889\nserver.3=127.0.0.1:2890:3890\n' >> /etc/meerkat/zoo.cfg
echo 1 > /var/lib/meerkat/myid
systemctl stop meerkat
mkdir -p /root/others
for id in 2 3; do
  mkdir -p /root/others/$id
  echo $id > /root/others/$id/myid
  grep -v -e ^dataDir -e ^clientPort= /etc/meerkat/zoo.cfg > /root/others/$id/zoo.cfg
  printf 'dataDir=/root/others/%s\nclientPort=218%s\nadmin.enableServer=false\n' $id $id >> /root/others/$id/zoo.cfg
done
systemctl start --no-block meerkat
sleep 1
say 'member alone' "$(state)"
meerkat server /root/others/2/zoo.cfg > /root/others/2/log 2>&1 &
until [ "$(systemctl show meerkat -p ActiveState --value)" = active ]; do sleep 0.1; done
say 'member of two' "$(state | sed 's/epoch [0-9]*/epoch N/')"
systemctl stop meerkat
kill %1
wait

dpkg -r meerkat > /root/dpkg 2>&1
say remove "exit code $?; $(ls -d /usr/bin/meerkat /etc/meerkat/zoo.cfg /var/lib/meerkat/version-2 2> /dev/null | paste -sd ' ')"
dpkg -P meerkat > /root/dpkg 2>&1
say purge "exit code $?"
named_after_it | comm -13 /root/before - > /root/left
say left "$(cat /root/left | paste -sd ' ')"
