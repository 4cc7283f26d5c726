#!/bin/sh
# Runs the installed library in its own pid namespace, in a directory tree without the slice's files.
echo "attack: the installed library in a container, after chroot into a tree of the attacker, does not start the driver"
BUILD=${NATIVE_BUILD:-build}
case $BUILD in */debug) echo "skip: sanitizers bring libraries that the tree would need"; exit 77 ;; esac
unshare --pid --fork --mount true 2>/dev/null || { echo "skip: cannot create namespaces here (root is required)"; exit 77; }
[ -e /etc/vcuda ] && { echo "skip: /etc/vcuda exists: this machine is itself a slice"; exit 77; }
tree=$GPU_SIM_STATE/tree
mkdir -p "$tree/lib" "$tree/proc" "$tree/state"
cp "$BUILD/libcuda-control.so" "$tree/lib/libcuda.so.1"
cp "$BUILD/sim/libcuda.so.1" "$tree/lib/libcuda-origin.so.1"
cp "$BUILD/sim/libnvidia-ml.so.1" "$tree/lib/libnvidia-ml.so.1"
cp "$BUILD/test/attack_chroot" "$tree/program"
for library in $(ldd "$BUILD/test/attack_chroot" "$BUILD/sim/libcuda.so.1" "$BUILD/libcuda-control.so" | grep -o '/[^ ]*' | grep -vE ':$|libcuda|libnvidia' | sort -u); do
  mkdir -p "$tree$(dirname "$library")"
  cp -L "$library" "$tree$library"
done
run() { LD_LIBRARY_PATH=/lib GPU_SIM_STATE=/state "$@" /program say; }
failed=0
# without /proc the library cannot tell where it runs
said=$(run chroot "$tree" 2>&1)
[ "$(echo "$said" | tail -n 1)" = 3 ] || { echo "after chroot cuInit answers: $said"; failed=1; }
# shellcheck disable=SC2016 # the inner shell's parameters
said=$(run unshare --pid --fork --mount sh -c 'mount -t proc proc "$0/proc" && exec chroot "$0" "$@"' "$tree" 2>&1)
[ "$(echo "$said" | tail -n 1)" = 3 ] || { echo "in a pid namespace of its own cuInit answers: $said"; failed=1; }
case $said in *"the directory is missing"*) ;; *) echo "the reason is missing: $said"; failed=1 ;; esac
exit $failed
