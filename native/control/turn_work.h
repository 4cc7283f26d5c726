/* What a slice launched in its turn: in which streams, and how long it took. See turn.h. */
#ifndef VGPU_TURN_WORK_H
#define VGPU_TURN_WORK_H

#include "cuda_abi.h"
#include <stdbool.h>
#include <stdint.h>

/* Adds launches that were charged `gpu_ns`, just before they are passed to the driver. */
void turn_work_add(uint32_t device, CUstream stream, uint64_t gpu_ns);

/* Whether launches may be incomplete. */
bool turn_work_runs(uint32_t device);

/* Called once after the last launch. */
void turn_work_last(uint32_t device);

/* What all launches took beyond their charge, once they are complete; negative: what they did not take; 0 where it was
 * not measured. Right only if nothing else ran meanwhile. */
int64_t turn_work_excess(uint32_t device);

/* The next launch begins anew. */
void turn_work_clear(uint32_t device);

/* Forget a stream or a context that is about to be destroyed. */
void turn_work_drop_stream(CUstream stream);
void turn_work_drop_context(CUcontext context);

#endif
