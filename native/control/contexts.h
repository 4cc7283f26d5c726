/*
 * Memory that the driver uses for contexts. The amount depends on GPU and driver: the first process of the container
 * that creates a context measures it, and the others wait for the result and charge the same. The agent sees the real
 * amount through NVML and adds the difference (driver_overhead_bytes).
 */
#ifndef VGPU_CONTEXTS_H
#define VGPU_CONTEXTS_H

#include "cuda_abi.h"
#include <stdbool.h>
#include <stdint.h>

struct contexts_reservation {
  int device;     /* index in the limits file; DEVICE_UNLISTED: not accounted */
  uint64_t bytes; /* charged */
  bool measures;
  uint64_t own_before; /* memory of this process according to the driver, before the context */
};

/* Before a context is created: reserves its cost. False: refused and counted. */
bool contexts_reserve(struct contexts_reservation *reservation, int device);

/* After the driver call; `context` is NULL if that failed. False: the context costs more than is left, and the caller
 * must destroy it. */
bool contexts_commit(struct contexts_reservation *reservation, CUcontext context);

#endif
