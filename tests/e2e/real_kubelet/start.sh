#!/usr/bin/env bash
# Runs containerd and a kubelet without an API server, in namespaces of their own: mounts, network and processes. The
# kubelet is started again whenever it ends. The first process of the namespaces is this one: with it, all others end.
# Usage: unshare --mount --net --pid --fork --mount-proc start.sh FOLDER KUBELET
set -euo pipefail
folder=$1
kubelet=$2

ip link set lo up
# Device plugins are looked for at this path, whatever the kubelet's folder is.
mount --bind "$folder/kubelet" /var/lib/kubelet
# The kubelet sets these for the whole machine unless they have its values already.
for setting in vm/overcommit_memory:1 kernel/panic:10 kernel/panic_on_oops:1; do
  printf '%s\n' "${setting#*:}" >"$folder/setting-$(basename "${setting%:*}")"
  mount --bind "$folder/setting-$(basename "${setting%:*}")" "/proc/sys/${setting%:*}"
done

containerd --config "$folder/containerd.toml" >"$folder/containerd.log" 2>&1 &
until ctr --address "$folder/containerd.sock" version >/dev/null 2>&1; do sleep 0.2; done
ctr --address "$folder/containerd.sock" --namespace k8s.io images import "$folder/image.tar" >/dev/null
while true; do
  "$kubelet" --config "$folder/kubelet.yaml" --hostname-override node-1 >>"$folder/kubelet.log" 2>&1 || true
  sleep 0.5
done
