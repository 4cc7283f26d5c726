/* The container's token bucket on one device: who has no tokens waits until there are some. */
#ifndef VGPU_BUCKET_H
#define VGPU_BUCKET_H

#include <stdbool.h>
#include <stdint.h>

/* Charges `gpu_ns`; waits first while the bucket is too far in debt. `waiting` is called before each sleep. */
void bucket_take(uint32_t device, uint64_t gpu_ns, void (*waiting)(void));

/* A launch that was charged by guess took `by_ns` more (or less, below zero). */
void bucket_adjust(uint32_t device, int64_t by_ns);

/* When everything charged so far would be done if nobody else used the GPU. */
uint64_t bucket_alone_until(uint32_t device);

/* A launch of `cost_ns` ended `late_ns` later than it would have alone: from these follows what a soft limit grants, or
 * whether what the agent grants may be used. */
void bucket_observe(uint32_t device, uint64_t late_ns, uint64_t cost_ns);

/* This device has a soft limit: how late launches end matters. */
bool bucket_is_soft(uint32_t device);

#endif
