/*
 * Connects the GPU's clock with ours, for one context. GPU times are taken since an event that was recorded lately; a
 * launch cannot have started before it was submitted, and the least delay seen since then is taken for none.
 */
#ifndef VGPU_ANCHOR_H
#define VGPU_ANCHOR_H

#include "cuda_abi.h"
#include <stdbool.h>
#include <stdint.h>

/* The anchor to use for what is submitted now to `stream`, renewed when it is old; 0: there is none for this context.
 */
uint32_t anchor_current(CUcontext context, CUstream stream, uint64_t now);

/* When `event` happened, in ns since that anchor; false when it was replaced meanwhile. */
bool anchor_time(uint32_t anchor, CUevent event, int64_t *since_ns);

/*
 * A time since the current anchor by our clock. `submitted_at_ns` is when what started at `since_ns` was submitted:
 * every call makes the connection better. One thread at a time.
 */
int64_t anchor_host_time(int64_t since_ns, uint64_t submitted_at_ns);

/* Something is measured against the current anchor: it is not renewed meanwhile. */
void anchor_hold(bool hold);

void anchor_drop_context(CUcontext context);

#endif
