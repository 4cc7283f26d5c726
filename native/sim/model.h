/* Access to a GPU's time model: lock it and advance it to the present. */
#ifndef SIM_MODEL_H
#define SIM_MODEL_H

#include "machine.h"

/* Locks the GPU and advances its model to the present. */
void sim_model_enter(struct sim_machine *machine, uint32_t gpu);
void sim_model_leave(struct sim_machine *machine, uint32_t gpu);

/* Advances the model to the present, unless another thread is doing so. */
void sim_model_touch(struct sim_machine *machine, uint32_t gpu);

#endif
