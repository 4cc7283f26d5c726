#!/bin/sh
# nvml_abi.h says the same as nvml.h
. "$(dirname "$0")/compare-abi.sh"
echo "the numbers, layouts and prototypes of NVML are those of the toolkit's nvml.h"
header=
for candidate in "${NVML_H:-}" "${CUDA_HOME:-/usr/local/cuda}/include/nvml.h" /usr/include/nvml.h; do
  [ -f "$candidate" ] && header=$candidate && break
done
[ -n "$header" ] || { echo "skip: no nvml.h is installed"; exit 77; }
SKIP_TYPES="nvmlPciInfo_v2_t nvmlEventData_v1_t"
compare_abi "-DNVML_NO_UNVERSIONED_FUNC_DEFS -include $header" include/nvml_functions.h include/nvml_calls.def include/nvml_abi.h
