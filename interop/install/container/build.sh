#!/bin/bash
# Builds an image and runs a script with it, as far as possible without Docker: the steps of the Dockerfile are executed
# on a copy-on-write view of this machine, which has the same Debian version as the image's base.
#
#     build.sh <directory> <steps> <script>
#
#     steps   a bash script generated from the Dockerfile; $root is the image, $context the context
#     script  is run in its own network namespace, with $root
set -eu
directory=$1 steps=$2 script=$3
if [ "${4-}" != inside ]; then exec unshare --mount --pid --fork --kill-child -- "$0" "$directory" "$steps" "$script" inside; fi
export root=$directory/root context=$directory/context
mkdir -p "$directory"/{upper,work} "$root"
mount -t overlay overlay -o "lowerdir=/,upperdir=$directory/upper,workdir=$directory/work" "$root"
mount -t proc proc "$root/proc"
mount -t tmpfs tmpfs "$root/tmp"
mount --rbind /dev "$root/dev"
# Removes what the base does not have: users of this machine, and ZooKeeper's scripts and directories.
sed -i -e '/^zookeeper:/d' -e '/^[^:]*:[^:]*:1000:/d' "$root/etc/passwd" "$root/etc/group"
rm -rf "$root/usr/share/zookeeper" "$root/conf" "$root/data" "$root/datalog" "$root/logs"
bash -eu "$steps"
exec unshare --net -- bash -u "$script"
