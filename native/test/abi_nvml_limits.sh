#!/bin/sh
# Compares nvml_memory_limits.h with an nvml.h that has memory limits of control groups.
. "$(dirname "$0")/compare-abi.sh"
echo "numbers, layouts and prototypes of memory limits of control groups are those of the toolkit's nvml.h"
header=$(find_header nvml.h "nvmlSetMemoryLimits_v1_t")
[ -n "$header" ] || { echo "skip: no nvml.h with nvmlSetMemoryLimits_v1_t (CUDA 13.4) in $(header_folders) (CUDA_HEADERS names folders that have one)"; exit 77; }
calls=$(mktemp -d)
grep 'MemoryLimits_v1' include/nvml_calls.def >"$calls/calls.def"
sed -E 's/^NVML_FORWARD\(([A-Za-z_]+), ([A-Za-z0-9_]+), (.*)\)$/\1 \2\3;/' "$calls/calls.def" >"$calls/functions.h"
(compare_abi "-I$calls -include $header" "$calls/functions.h" "$calls/calls.def" include/nvml_memory_limits.h)
result=$?
rm -r "$calls"
exit $result
