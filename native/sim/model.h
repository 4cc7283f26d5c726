/*
 * The way to a GPU's time model: its lock, and the present.
 */
#ifndef SIM_MODEL_H
#define SIM_MODEL_H

#include "machine.h"

/* Takes the GPU's lock and moves the model to the present. */
void sim_model_enter(struct sim_machine *machine, uint32_t gpu);
void sim_model_leave(struct sim_machine *machine, uint32_t gpu);

/* Moves the model to the present, unless somebody else is just doing it. */
void sim_model_touch(struct sim_machine *machine, uint32_t gpu);

#endif
