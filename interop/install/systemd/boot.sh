#!/bin/bash
# Boots systemd on an overlay of this machine's files, in its own namespaces, and runs a script in it. The machine is
# not changed: all writes go to the overlay, which is deleted with the directory.
#
#     boot.sh <directory for the overlay> <package> <script>
#
# The script's output is in <directory>/upper/root/output when this ends. Needs root; cgroups of version 1 or 2.
set -eu
directory=$1 package=$2 script=$3
if [ "${4-}" != inside ]; then
  exec unshare --mount --pid --fork --net --uts --ipc --kill-child -- "$0" "$directory" "$package" "$script" inside
fi

root=$directory/root
mkdir -p "$directory"/{upper/root,work} "$root"
cp "$package" "$directory/upper/root/package.deb"
cp "$script" "$directory/upper/root/script"
mount -t overlay overlay -o "lowerdir=/,upperdir=$directory/upper,workdir=$directory/work" "$root"
mount -t proc proc "$root/proc"
mount -t tmpfs tmpfs "$root/run"
mount -t tmpfs tmpfs "$root/tmp"
mount --rbind /dev "$root/dev"
mount -t sysfs sysfs "$root/sys"
if grep -q '^nodev.cgroup$' /proc/filesystems; then
  mount -t tmpfs tmpfs "$root/sys/fs/cgroup"
  mkdir "$root/sys/fs/cgroup/systemd"
  mount -t cgroup -o none,name=systemd cgroup "$root/sys/fs/cgroup/systemd"
else
  mount -t cgroup2 cgroup2 "$root/sys/fs/cgroup"
fi
# Build machines forbid starting services.
rm -f "$root/usr/sbin/policy-rc.d"
# Faster: no index of manual pages, no fsync for each file.
rm -f "$root/var/lib/man-db/auto-update"
echo force-unsafe-io > "$root/etc/dpkg/dpkg.cfg.d/unsafe-io"
cat > "$root/etc/systemd/system/script.service" << 'END'
[Service]
Type=oneshot
StandardOutput=append:/root/output
StandardError=append:/root/output
Environment=LANG=C.UTF-8 HOME=/root
ExecStart=/bin/bash /root/script
ExecStopPost=/bin/systemctl poweroff -ff
END
cat > "$root/etc/systemd/system/script.target" << 'END'
[Unit]
Requires=script.service systemd-journald.socket systemd-journald.service dbus.socket
After=dbus.socket
END
mkdir -p "$root/mnt/old"
cd "$root"
pivot_root . mnt/old
exec env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin container=other chroot . /bin/bash -c \
  'umount -l /mnt/old; exec /lib/systemd/systemd --system --unit=script.target --log-target=null' < /dev/null > /dev/null 2>&1
