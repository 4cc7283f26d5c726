/*
 * Processes that use the machine: their rows, and what happens to what they leave behind.
 */
#ifndef SIM_PROCESS_H
#define SIM_PROCESS_H

#include "machine.h"

/* The row of this process, which its libraries share: each enters and leaves. -1: no room. */
int sim_process_enter(struct sim_machine *machine, bool driver);

/* A library goes; with the last one the process: its work is dropped, its memory is free. */
void sim_process_leave(struct sim_machine *machine, uint32_t process);

/* Lets the dead go. Looks only once in a while unless told `now`. */
void sim_process_sweep(struct sim_machine *machine, bool now);

/* Lets go those of the dead that have anything on this GPU, now. */
void sim_process_sweep_gpu(struct sim_machine *machine, uint32_t gpu);

/* Does any process use the machine? */
bool sim_process_any(struct sim_machine *machine);

#endif
