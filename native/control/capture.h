/* Whether a stream is being captured into a graph: then nothing runs, so nothing may be charged, timed or allocated. */
#ifndef VGPU_CAPTURE_H
#define VGPU_CAPTURE_H

#include "cuda_abi.h"
#include <stdbool.h>
#include <stdint.h>

/* Captures under way in this process. */
extern uint32_t captures __attribute__((visibility("hidden")));

/* What the default stream stands for in the per-thread variants of a call. */
static inline CUstream capture_stream(CUstream stream, bool per_thread) {
  return per_thread && stream == NULL ? CU_STREAM_PER_THREAD : stream;
}

/* The slow side of capture_covers. */
bool capture_asks(CUstream stream);

/* Costs one load while nothing is captured. */
static inline bool capture_covers(CUstream stream) {
  return __builtin_expect(__atomic_load_n(&captures, __ATOMIC_RELAXED) != 0, 0) && capture_asks(stream);
}

/* Whether that stream is being captured; a stream that cannot be asked is not. */
bool capture_runs_on(CUstream stream);

void capture_begun(void);
void capture_ended(void);

#endif
