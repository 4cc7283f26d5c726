/* Which device of the slice pays for memory, by the location that a program asks for. */
#ifndef VGPU_PLACE_H
#define VGPU_PLACE_H

#include "cuda_abi.h"

/* Pinned memory of the host: nobody pays. */
#define PLACE_HOST (-2)

/*
 * Index in the limits file; DEVICE_UNLISTED for a device that is not there, PLACE_HOST. Only pinned host memory is
 * exempt: managed memory moves to the GPU wherever it begins, and a kind of location that is not known here may be on
 * it, so both are charged, to the current device where the location names none.
 */
int place_of(CUmemAllocationType type, const CUmemLocation *location);

/* The same for a pool that was not made here, such as a default pool; `device` where the driver does not say. */
int place_of_pool(CUmemoryPool pool, int device);

#endif
