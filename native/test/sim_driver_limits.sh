#!/bin/sh
# Runs what native/test/gpu/run asks a real driver, on the simulated one and the control groups of this machine.
echo "the questions about memory limits to a real driver have their documented answers from the simulated one"
root=$(awk '$3 == "cgroup2" { print $2; exit }' /proc/mounts)
[ -n "$root" ] || { echo "skip: no control groups of version 2 are mounted"; exit 77; }
[ "$(id -u)" = 0 ] || { echo "skip: only root may set memory limits of control groups"; exit 77; }
command -v "${CC:-cc}" >/dev/null || { echo "skip: ${CC:-cc} is not installed"; exit 77; }
case $NATIVE_BUILD in */debug) echo "skip: what is linked here would need the sanitizers"; exit 77 ;; esac
work=$(mktemp -d)
trap 'rm -r "$work"' EXIT
sim=$NATIVE_BUILD/sim
${CC:-cc} -std=gnu11 -O2 -Wall -Wextra -Werror -Iinclude test/gpu/driver_limits.c "$sim/libcuda.so.1" "$sim/libnvidia-ml.so.1" -Wl,-rpath,"$sim" -ldl -o "$work/driver_limits" || exit 1
answers() { # version
  printf '{"driverVersion": "%s", "gpus": [{}], "simulation": {"controlGroups": "%s"}}' "$1" "$root" >"$work/node.json"
  GPU_SIM_NODE=$work/node.json GPU_SIM_STATE=$work/$1 "$work/driver_limits" "$root"
}
answers 615.10.01 || exit 1
answers 580.95.05
[ $? -eq 77 ] || { echo "an earlier driver is not skipped"; exit 1; }
