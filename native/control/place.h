/* Determines which device of the slice is charged for memory, from the location that a program requests. */
#ifndef VGPU_PLACE_H
#define VGPU_PLACE_H

#include "cuda_abi.h"

/* Pinned host memory: not charged. */
#define PLACE_HOST (-2)

/*
 * Index in the limits file; DEVICE_UNLISTED for a device that is not listed, or PLACE_HOST. Only pinned host memory is
 * exempt. Managed memory can migrate to the GPU, and an unknown location type may be on the GPU, so both are charged:
 * to the current device if the location names none.
 */
int place_of(CUmemAllocationType type, const CUmemLocation *location);

/* The location of a pool that this process did not create, such as a default pool; `device` if the driver does not
 * report one. */
int place_of_pool(CUmemoryPool pool, int device);

#endif
