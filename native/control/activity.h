/*
 * Publishes what this process has queued on the GPU, for slices that give way to it (yield.h): a claim in the slice's
 * activity file (see vgpu_abi.h). The claim lasts as long as the launches cost. When a wait shows that they are
 * complete, it ends at once, or after as short a pause as the program made lately before it launched again.
 */
#ifndef VGPU_ACTIVITY_H
#define VGPU_ACTIVITY_H

#include "cuda_abi.h"
#include <stdbool.h>
#include <stdint.h>

enum activity {
  ACTIVITY_NONE = 0,
  ACTIVITY_OF_TOKENS,   /* claims when a thread takes tokens, for all launches that these are for */
  ACTIVITY_OF_LAUNCHES, /* claims at each launch: a high slice */
  ACTIVITY_OF_TURNS,    /* no claims: only notes when the program waits, see pauses.h */
};

extern uint32_t activity_now __attribute__((visibility("hidden")));

/* Whether waits of the program are noted. Costs a load. */
static inline bool activity_is_on(void) {
  return __builtin_expect(__atomic_load_n(&activity_now, __ATOMIC_RELAXED) != ACTIVITY_NONE, 0);
}

static inline bool activity_is_of(enum activity activity) {
  return __builtin_expect(__atomic_load_n(&activity_now, __ATOMIC_RELAXED) == (uint32_t)activity, 0);
}

/* Starts or stops publishing. Called after the limits were read. */
void activity_set(enum activity activity);

/* Called before launches that take `gpu_ns`. */
void activity_launch(CUstream stream, uint64_t gpu_ns);

/* Called before a thread waits for the GPU. Returns a mark for the end of the wait. */
uint64_t activity_wait(void);

/* Called after the wait. `stream`: all launches on it before the mark are complete. */
void activity_waited(uint64_t mark);
void activity_waited_for_stream(uint64_t mark, CUstream stream);
void activity_waited_for_all(uint64_t mark);

#endif
