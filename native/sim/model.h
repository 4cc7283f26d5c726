/*
 * The way to a card's time model: its lock, and the present.
 */
#ifndef SIM_MODEL_H
#define SIM_MODEL_H

#include "machine.h"

/* Takes the card's lock and moves the model to the present. */
void sim_model_enter(struct sim_machine *machine, uint32_t card);
void sim_model_leave(struct sim_machine *machine, uint32_t card);

/* Moves the model to the present, unless somebody else is just doing it. */
void sim_model_touch(struct sim_machine *machine, uint32_t card);

/*
 * Waits until a channel has done `ticket` operations. False: the card was lost, or `abandoned` says that nobody needs
 * to wait any more.
 */
bool sim_model_wait(struct sim_machine *machine, uint32_t card, uint32_t channel, uint64_t ticket, bool blocking);

/* The same for an event, which may be recorded on any card, by any process. */
void sim_model_wait_event(struct sim_machine *machine, uint32_t event, uint64_t ticket, bool blocking);

/* Is the event reached at the present? */
bool sim_model_event_reached(struct sim_machine *machine, uint32_t event, uint64_t ticket);

#endif
