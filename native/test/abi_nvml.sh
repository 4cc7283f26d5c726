#!/bin/sh
# Compares nvml_abi.h with nvml.h.
. "$(dirname "$0")/compare-abi.sh"
echo "the numbers, layouts and prototypes of NVML are those of the toolkit's nvml.h"
links=$(sed -n 's/^#define NVML_NVLINK_MAX_LINKS \([0-9]*\).*/\1/p' include/nvml_abi.h)
header=$(find_header nvml.h "^#define NVML_NVLINK_MAX_LINKS $links\b")
[ -n "$header" ] || { echo "skip: no nvml.h with NVML_NVLINK_MAX_LINKS $links (CUDA 12 and 13.0) in $(header_folders) (CUDA_HEADERS names folders that have one)"; exit 77; }
# Types that the vendor's headers do not declare (removed, or added with CUDA 13; abi_nvml_limits.sh compares those of memory limits). They match today's types in
# prototypes.
SKIP_TYPES="nvmlPciInfo_v2_t nvmlEventData_v1_t nvmlDeviceAddressingMode_t nvmlSetMemoryLimits_v1_t nvmlGetMemoryLimits_v1_t"
compare_abi "-DNVML_NO_UNVERSIONED_FUNC_DEFS -DnvmlPciInfo_v2_t=nvmlPciInfo_t -DnvmlEventData_v1_t=nvmlEventData_t -DnvmlDeviceAddressingMode_t=nvmlBusType_t -DnvmlSetMemoryLimits_v1_t=nvmlMemory_t -DnvmlGetMemoryLimits_v1_t=nvmlMemory_t -include $header" include/nvml_functions.h include/nvml_calls.def include/nvml_abi.h
