/* Waits for the model, and cleans up after dead processes meanwhile. */
#ifndef SIM_WAIT_H
#define SIM_WAIT_H

#include "machine.h"

/* Advances the other GPUs, whose events streams of this GPU may wait for. */
void sim_touch_others(struct sim_machine *machine, uint32_t gpu);

/* Waits until a channel has completed `ticket` operations. False: the GPU was lost, or the work was abandoned. */
bool sim_wait_channel(struct sim_machine *machine, uint32_t gpu, uint32_t channel, uint64_t ticket, bool blocking);

/* Waits for an event, which may be recorded on any GPU by any process. */
void sim_wait_event(struct sim_machine *machine, uint32_t event, uint64_t ticket, bool blocking);

/* Whether the event is reached at the present. */
bool sim_event_is_reached(struct sim_machine *machine, uint32_t event, uint64_t ticket);

#endif
