#!/bin/sh
# own-machine.sh DIRECTORY COMMAND...: runs a command as on a machine of its own, so that two clusters can run at the same
# time: with its own network, processes, control groups, and folders that the programs of a node write. Needs root. What the
# programs wrote stays in DIRECTORY; processes that the command leaves end with it.
set -eu
control_groups=/sys/fs/cgroup
name=gm-e2e-$(basename "$1")

# In the new namespaces of everything but control groups: 1 is the folder, the others the command.
if [ "${GPU_MANAGER_E2E_STAGE:-}" = namespaces ]; then
  unset GPU_MANAGER_E2E_STAGE
  directory=$1
  shift
  mount --make-rprivate /
  for folder in /var/lib/kubelet /var/log /run; do
    mkdir -p "$directory$folder" "$folder"
    mount --bind "$directory$folder" "$folder"
  done
  # The machine's own files, and what the node writes over them.
  for folder in /etc /usr/local; do
    mkdir -p "$directory$folder" "$directory/work$folder"
    mount -t overlay overlay -o "lowerdir=$folder,upperdir=$directory$folder,workdir=$directory/work$folder" "$folder"
  done
  # The control group that this process is in becomes the root of each hierarchy.
  hierarchies=$(awk -v under="$control_groups" '$3 ~ /^cgroup2?$/ && index($2, under) == 1 { print $2, $3, $4 }' /proc/mounts)
  mount -t sysfs sysfs /sys
  [ "$(echo "$hierarchies" | wc -l)" = 1 ] || mount -t tmpfs tmpfs "$control_groups"
  echo "$hierarchies" | while read -r path type options; do
    mkdir -p "$path"
    case $type in
      cgroup) mount -t cgroup -o "$(echo "$options" | tr , '\n' | grep -vxE 'rw|relatime|nosuid|nodev|noexec' | paste -sd,)" cgroup "$path" ;;
      cgroup2)
        mount -t cgroup2 cgroup2 "$path"
        # Only a group without processes may divide what it has.
        mkdir -p "$path/self"
        echo $$ >"$path/self/cgroup.procs"
        for controller in $(cat "$path/cgroup.controllers"); do echo "+$controller" >"$path/cgroup.subtree_control"; done
        ;;
    esac
  done
  # The kubelet takes the address of the default route as the node's; it leads nowhere.
  ip link set lo up
  ip link add node0 type bridge
  ip address add 10.254.0.1/24 dev node0
  ip link set node0 up
  ip route add default via 10.254.0.2
  # Names are refused at once, so the kubelet does not wait for an image that it cannot pull.
  echo nameserver 127.0.0.1 >/etc/resolv.conf
  exec "$@"
fi

directory=$1
shift
mkdir -p "$directory"
groups=$(awk -v under="$control_groups" -v name="$name" \
  '$3 ~ /^cgroup2?$/ && index($2, under) == 1 { print $2 "/" name }' /proc/mounts)
status=0
(
  for group in $groups; do
    mkdir -p "$group"
    # A new group of this hierarchy has no processor and no memory until it is told.
    for file in cpuset.cpus cpuset.mems; do
      [ ! -e "$group/$file" ] || [ -n "$(cat "$group/$file")" ] || cat "$group/../$file" >"$group/$file"
    done
    sh -c 'echo $PPID' >"$group/cgroup.procs"
  done
  GPU_MANAGER_E2E_STAGE=namespaces exec unshare --mount --net --pid --fork --kill-child --mount-proc --cgroup \
    sh "$0" "$directory" "$@"
) || status=$?
# Not while a last process ends; the next run uses what stays.
for group in $groups; do find "$group" -depth -type d -exec rmdir {} + 2>/dev/null || true; done
exit $status
