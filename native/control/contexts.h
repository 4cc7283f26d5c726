/*
 * What the driver takes for contexts themselves. How much that is depends on GPU and driver: the first process of the
 * container that makes a context measures it, the others wait for that and charge the same. What it is in truth the
 * agent sees in NVML, and adds what is missing (driver_overhead_bytes).
 */
#ifndef VGPU_CONTEXTS_H
#define VGPU_CONTEXTS_H

#include "cuda_abi.h"
#include <stdbool.h>
#include <stdint.h>

struct contexts_claim {
  int device;     /* index in the limits file; DEVICE_UNLISTED: not accounted */
  uint64_t bytes; /* charged */
  bool measures;
  uint64_t own_before; /* what the driver counted of this process */
};

/* Before a context is made: takes what it will cost. False: refused and counted. */
bool contexts_claim(struct contexts_claim *claim, int device);

/* After the driver call, `context` NULL when that failed. False: it costs more than there is, and has to go. */
bool contexts_settle(struct contexts_claim *claim, CUcontext context);

#endif
