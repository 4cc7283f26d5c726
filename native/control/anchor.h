/* Relates the GPU's clock to the host's clock for one context. GPU times are measured from a recently recorded event,
 * the anchor. A launch cannot start before it is submitted, so the smallest observed delay is taken as zero. */
#ifndef VGPU_ANCHOR_H
#define VGPU_ANCHOR_H

#include "cuda_abi.h"
#include <stdbool.h>
#include <stdint.h>

/* The number of the current anchor for work that is submitted to `stream` now; renewed when it is old. 0: the context
 * has no anchor. */
uint32_t anchor_current(CUcontext context, CUstream stream, uint64_t now);

/* The time of `event` in ns since that anchor. False: the anchor was replaced meanwhile. */
bool anchor_time(uint32_t anchor, CUevent event, int64_t *since_ns);

/* Converts a time since the current anchor to the host's clock. `submitted_at_ns` is when the work that started at
 * `since_ns` was submitted; each call can improve the conversion. One thread at a time. */
int64_t anchor_host_time(int64_t since_ns, uint64_t submitted_at_ns);

/* Prevents the renewal of the anchor while a measurement uses it. */
void anchor_hold(bool hold);

void anchor_drop_context(CUcontext context);

#endif
