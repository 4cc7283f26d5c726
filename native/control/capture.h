/* Stream capture into graphs. A captured call does not run, so it must not be charged, timed or allocated for. */
#ifndef VGPU_CAPTURE_H
#define VGPU_CAPTURE_H

#include "cuda_abi.h"
#include <stdbool.h>
#include <stdint.h>

/* Number of captures in progress in this process. */
extern uint32_t captures __attribute__((visibility("hidden")));

/* Resolves the default stream for the per-thread variants of a call. */
static inline CUstream capture_stream(CUstream stream, bool per_thread) {
  return per_thread && stream == NULL ? CU_STREAM_PER_THREAD : stream;
}

/* Slow path of capture_covers. */
bool capture_query(CUstream stream);

/* Whether a call on this stream is captured. One load while no capture is in progress. */
static inline bool capture_covers(CUstream stream) {
  return __builtin_expect(__atomic_load_n(&captures, __ATOMIC_RELAXED) != 0, 0) && capture_query(stream);
}

/* Whether the stream itself is being captured; false if the driver cannot tell. */
bool capture_runs_on(CUstream stream);

void capture_begun(void);
void capture_ended(void);

#endif
