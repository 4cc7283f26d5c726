/* How a slice yields: before a launch it reads the claims of other slices on the same GPU (activity.h), and waits while
 * they have work. A low slice yields to high ones; a minimum share prevents its starvation. A slice with a soft limit
 * yields while it has used more than its own share lately, so that the others get back what they lent. */
#ifndef VGPU_YIELD_H
#define VGPU_YIELD_H

#include "cuda_abi.h"
#include <stdbool.h>
#include <stdint.h>

/* Returns when launches of `gpu_ns` on this stream may be passed to the driver; at once if the slice yields to none.
 * `waiting` is called before each sleep. Returns the time waited. */
uint64_t yield_to_others(uint32_t device, CUstream stream, uint64_t gpu_ns, void (*waiting)(void));

/* Corrects what the slice has used of its own share: launches that it was charged took `by_ns` more (or less, if
 * negative). */
void yield_adjust(uint32_t device, int64_t by_ns);

/* Whether the slice has a soft limit, yields to others, and has used no more than its share lately: then others yield
 * to its claims. */
bool yield_is_within_share(uint32_t device);

#endif
