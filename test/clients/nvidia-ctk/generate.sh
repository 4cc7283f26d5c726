#!/bin/sh
# nvidia-ctk cdi generate on a root folder as a driver package fills it, with the libraries that LD_LIBRARY_PATH leads to.
# generate.sh NVIDIA_CTK DRIVER_VERSION
set -eu
ctk=$1 version=$2
libraries=${LD_LIBRARY_PATH%%:*}
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
mkdir -p "$root/usr/lib/x86_64-linux-gnu" "$root/dev"
for library in libcuda libnvidia-ml; do
  file=$libraries/$library-origin.so.1
  [ -e "$file" ] || file=$libraries/$library.so.1
  cp "$file" "$root/usr/lib/x86_64-linux-gnu/$library.so.$version"
  ln -s "$library.so.$version" "$root/usr/lib/x86_64-linux-gnu/$library.so.1"
done
# Character devices, as those of a GPU are.
for device in nvidia0 nvidiactl nvidia-uvm nvidia-uvm-tools; do ln -s /dev/null "$root/dev/$device"; done
"$ctk" --quiet cdi generate --mode=nvml --format=json --driver-root="$root" --nvidia-cdi-hook-path=/usr/bin/nvidia-cdi-hook | sed "s#$root#ROOT#g"
