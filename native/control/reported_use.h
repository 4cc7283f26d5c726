/*
 * Corrects the charges of long launches by the GPU time that the driver reports for this process: charges beyond that
 * time are refunded. Used only while no agent steers the slice, because the agent makes the same comparison. A
 * throttled thread queries NVML, at most every REPORTED_USE_PERIOD_NS, and only while launches of ESTIMATE_LONG_NS and
 * more are charged. Shorter launches need no correction: some of their samples contain no time slice of another
 * container.
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

/* The excess of the charges over the reported GPU time, at most `most_ns`; the caller refunds it. */
uint64_t reported_use_excess(uint32_t device, uint64_t most_ns, uint64_t now);

/* Closes NVML. Called when an agent steers the slice. */
void reported_use_end(void);

#endif
