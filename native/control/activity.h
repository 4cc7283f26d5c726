/*
 * What this process of a high slice has queued on the GPU, for low slices to read: a claim in the slice's activity file
 * (see vgpu_abi.h). The claim lasts as long as the launches cost, and ends at once when a wait shows that they are
 * complete.
 */
#ifndef VGPU_ACTIVITY_H
#define VGPU_ACTIVITY_H

#include "cuda_abi.h"
#include <stdbool.h>
#include <stdint.h>

extern uint32_t activity_on __attribute__((visibility("hidden")));

/* The slice is a high one: claims are published. Costs a load. */
static inline bool activity_is_on(void) {
  return __builtin_expect(__atomic_load_n(&activity_on, __ATOMIC_RELAXED) != 0, 0);
}

/* Starts or stops publishing, when the limits were read. */
void activity_set(bool high);

/* A launch that takes `gpu_ns` is about to go to the driver. */
void activity_launch(CUstream stream, uint64_t gpu_ns);

/* A thread is about to wait for the GPU, for as long as that takes; returns a mark for the end of the wait. */
uint64_t activity_wait(void);

/* The wait is over. `stream`: all that was launched on it before the mark is complete. */
void activity_waited(uint64_t mark);
void activity_waited_for_stream(uint64_t mark, CUstream stream);
void activity_waited_for_all(uint64_t mark);

#endif
