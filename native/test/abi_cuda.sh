#!/bin/sh
# Compares cuda_abi.h with cuda.h: every number, size, offset and prototype.
. "$(dirname "$0")/compare-abi.sh"
echo "the numbers, layouts and prototypes of the CUDA driver are those of the toolkit's cuda.h"
newest=$(sed -n 's/^#define CUDA_ABI_VERSION \([0-9]*\).*/\1/p' include/cuda_abi.h)
header=$(find_header cuda.h "^#define CUDA_VERSION $newest\$")
[ -n "$header" ] || { echo "skip: no cuda.h of CUDA $newest in $(header_folders) (CUDA_HEADERS names folders that have one)"; exit 77; }
compare_abi "-D__CUDA_API_VERSION_INTERNAL -include $header" include/cuda_functions.h include/cuda_calls.def include/cuda_abi.h include/cuda_abi_memory.h include/cuda_abi_graph.h
