#!/bin/sh
# cuda_abi.h says the same as cuda.h: every number, every size and offset, every prototype
. "$(dirname "$0")/compare-abi.sh"
echo "the numbers, layouts and prototypes of the CUDA driver are those of the toolkit's cuda.h"
header=
for candidate in "${CUDA_HOME:-/usr/local/cuda}/include/cuda.h" /usr/include/cuda.h; do
  [ -f "$candidate" ] && header=$candidate && break
done
[ -n "$header" ] || { echo "skip: no CUDA toolkit is installed (looked for cuda.h)"; exit 77; }
grep -q '^#define CUDA_VERSION 13' "$header" || { echo "skip: $header is of another CUDA version than 13"; exit 77; }
compare_abi "-D__CUDA_API_VERSION_INTERNAL -include $header" include/cuda_functions.h include/cuda_calls.def include/cuda_abi.h include/cuda_abi_memory.h include/cuda_abi_graph.h
