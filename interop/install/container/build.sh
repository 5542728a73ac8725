#!/bin/bash
# Builds an image and runs a script beside it, as far as that goes without Docker: the steps of the Dockerfile are carried out on a
# copy-on-write view of this machine, which is of the same Debian as the image's base.
#
#     build.sh <directory> <steps> <script>
#
#     steps   a bash script that is made from the Dockerfile; $root is the image, $context the context
#     script  is run in a network of its own, with $root
set -eu
directory=$1 steps=$2 script=$3
if [ "${4-}" != inside ]; then exec unshare --mount --pid --fork --kill-child -- "$0" "$directory" "$steps" "$script" inside; fi
export root=$directory/root context=$directory/context
mkdir -p "$directory"/{upper,work} "$root"
mount -t overlay overlay -o "lowerdir=/,upperdir=$directory/upper,workdir=$directory/work" "$root"
mount -t proc proc "$root/proc"
mount -t tmpfs tmpfs "$root/tmp"
mount --rbind /dev "$root/dev"
# What the base does not have: users of this machine, and ZooKeeper's own scripts and directories.
sed -i -e '/^zookeeper:/d' -e '/^[^:]*:[^:]*:1000:/d' "$root/etc/passwd" "$root/etc/group"
rm -rf "$root/usr/share/zookeeper" "$root/conf" "$root/data" "$root/datalog" "$root/logs"
bash -eu "$steps"
exec unshare --net -- bash -u "$script"
