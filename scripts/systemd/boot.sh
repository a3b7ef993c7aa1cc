#!/usr/bin/env bash
# boot.sh WORK CGROUP CHECKOUT: boots systemd in a container over a copy-on-write view of this machine's
# root, and stays until the container is off. Runs in a mount namespace of its own (main.ts sees to that),
# so that no mount made here is seen outside of it.
set -euo pipefail
work=$1 cgroup=$2 checkout=$3

mount -t tmpfs -o mode=755 tmpfs "$work"
mkdir "$work/upper" "$work/scratch" "$work/root"
mount -t overlay overlay -o "lowerdir=/,upperdir=$work/upper,workdir=$work/scratch" "$work/root"

# What main.ts wants to be in there before init runs.
cp -a "$work.stage/." "$work/root/"

# A unified hierarchy, for this namespace only; the container lives in a cgroup of its own.
mount -t cgroup2 cgroup2 /sys/fs/cgroup
mkdir "/sys/fs/cgroup/$cgroup"
echo $$ >"/sys/fs/cgroup/$cgroup/cgroup.procs"

export SYSTEMD_NSPAWN_UNIFIED_HIERARCHY=1
exec systemd-nspawn --quiet --register=no --keep-unit --private-network --system-call-filter=bpf \
  --console=pipe --link-journal=no --machine=agentd-proof --bind-ro="$checkout" \
  -b -D "$work/root" systemd.unit=basic.target </dev/null
