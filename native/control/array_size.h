/* Computes the memory size of arrays from their description. Pure arithmetic. */
#ifndef VGPU_ARRAY_SIZE_H
#define VGPU_ARRAY_SIZE_H

#include "cuda_abi.h"
#include <stdbool.h>
#include <stdint.h>

/* Bytes of an array; 0 if it has no memory of its own (sparse, mapped later); UINT64_MAX on overflow. */
uint64_t array_bytes(const CUDA_ARRAY3D_DESCRIPTOR *array);

/* False for a number of channels that its format cannot have; true for an unknown format. */
bool array_has_channels(const CUDA_ARRAY3D_DESCRIPTOR *array);

/* Bytes of all levels of a mipmapped array. Levels beyond the possible number are ignored. */
uint64_t mipmap_bytes(const CUDA_ARRAY3D_DESCRIPTOR *array, unsigned int levels);

#endif
