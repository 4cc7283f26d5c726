/*
 * Waiting for what the model does, while processes that died are let go.
 */
#ifndef SIM_WAIT_H
#define SIM_WAIT_H

#include "machine.h"

/*
 * Waits until a channel has done `ticket` operations. False: the GPU was lost, or `abandoned` says that nobody needs
 * to wait any more.
 */
bool sim_wait_channel(struct sim_machine *machine, uint32_t gpu, uint32_t channel, uint64_t ticket, bool blocking);

/* The same for an event, which may be recorded on any GPU, by any process. */
void sim_wait_event(struct sim_machine *machine, uint32_t event, uint64_t ticket, bool blocking);

/* Is the event reached at the present? */
bool sim_event_is_reached(struct sim_machine *machine, uint32_t event, uint64_t ticket);

#endif
