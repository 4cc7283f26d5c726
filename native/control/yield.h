/* How a low slice yields: before a launch it reads the claims of high slices on the same GPU (activity.h), and waits
 * while they have work. A minimum share prevents starvation of the low slice. */
#ifndef VGPU_YIELD_H
#define VGPU_YIELD_H

#include "cuda_abi.h"
#include <stdint.h>

/* Returns when launches of `gpu_ns` on this stream may be passed to the driver; at once unless the slice is low.
 * `waiting` is called before each sleep. Returns the time waited. */
uint64_t yield_to_high(uint32_t device, CUstream stream, uint64_t gpu_ns, void (*waiting)(void));

#endif
