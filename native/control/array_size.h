/* How much memory an array takes: pure arithmetic over its description. */
#ifndef VGPU_ARRAY_SIZE_H
#define VGPU_ARRAY_SIZE_H

#include "cuda_abi.h"
#include <stdint.h>

/* Bytes of an array; 0 when it has no memory of its own (sparse, mapped later); UINT64_MAX when no number can say it.
 */
uint64_t array_bytes(const CUDA_ARRAY3D_DESCRIPTOR *array);

/* Bytes of all levels of a mipmapped array; more levels than it can have count once. */
uint64_t mipmap_bytes(const CUDA_ARRAY3D_DESCRIPTOR *array, unsigned int levels);

#endif
