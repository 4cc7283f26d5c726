/*
 * The GPU time of this process as the driver reports it, for slices that no agent steers: what long launches were
 * charged beyond it is given back. The agent compares charges with the same reports; without it, NVML is asked at most
 * every REPORTED_USE_PERIOD_NS, by a thread that waits for tokens, and only while launches of ESTIMATE_LONG_NS and
 * more are charged: shorter ones are timed between the time slices of others.
 */
#ifndef VGPU_REPORTED_USE_H
#define VGPU_REPORTED_USE_H

#include <stdint.h>

#define REPORTED_USE_PERIOD_NS 100000000ull

/* Counts a charge of this process, or its correction. */
void reported_use_charged(uint32_t device, int64_t gpu_ns);

/* Counts a timed launch, and that the GPU has completed it. */
void reported_use_launched(uint32_t device, uint64_t charged_ns);
void reported_use_completed(uint32_t device, uint64_t charged_ns);

/* GPU time that was charged too much, at most `most_ns`; the caller gives it back. */
uint64_t reported_use_excess(uint32_t device, uint64_t most_ns, uint64_t now);

/* The agent steers: closes NVML. */
void reported_use_end(void);

#endif
