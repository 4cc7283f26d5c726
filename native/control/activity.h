/*
 * Publishes what this process of a high slice has queued on the GPU, for low slices to read: a claim in the slice's
 * activity file (see vgpu_abi.h). The claim lasts as long as the launches cost. When a wait shows that they are
 * complete, it ends at once, or after as short a pause as the program made lately before it launched again.
 */
#ifndef VGPU_ACTIVITY_H
#define VGPU_ACTIVITY_H

#include "cuda_abi.h"
#include <stdbool.h>
#include <stdint.h>

extern uint32_t activity_on __attribute__((visibility("hidden")));

/* Whether the slice has high priority and publishes claims. Costs a load. */
static inline bool activity_is_on(void) {
  return __builtin_expect(__atomic_load_n(&activity_on, __ATOMIC_RELAXED) != 0, 0);
}

/* Starts or stops publishing. Called after the limits were read. */
void activity_set(bool high);

/* Called before a launch that takes `gpu_ns`. */
void activity_launch(CUstream stream, uint64_t gpu_ns);

/* Called before a thread waits for the GPU. Returns a mark for the end of the wait. */
uint64_t activity_wait(void);

/* Called after the wait. `stream`: all launches on it before the mark are complete. */
void activity_waited(uint64_t mark);
void activity_waited_for_stream(uint64_t mark, CUstream stream);
void activity_waited_for_all(uint64_t mark);

#endif
