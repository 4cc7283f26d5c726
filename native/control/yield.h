/*
 * How a low slice gives way: before it launches, it reads what high slices on the same GPU claim (activity.h), and
 * waits while they have work. A floor keeps it from starving.
 */
#ifndef VGPU_YIELD_H
#define VGPU_YIELD_H

#include "cuda_abi.h"
#include <stdint.h>

/*
 * Returns when `gpu_ns` of launches on this stream may go to the driver; at once unless the slice is a low one.
 * `waiting` is called before each sleep. Returns how long it waited.
 */
uint64_t yield_to_high(uint32_t device, CUstream stream, uint64_t gpu_ns, void (*waiting)(void));

#endif
