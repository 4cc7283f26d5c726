/* Processes that use the machine: their rows, and the cleanup after they end. */
#ifndef SIM_PROCESS_H
#define SIM_PROCESS_H

#include "machine.h"

/* Registers a library of this process; its libraries share one row. -1: no free row. */
int sim_process_enter(struct sim_machine *machine, bool driver);

/* Unregisters a library. When the last library is unregistered, the work of the process is dropped and its memory is
 * freed. */
void sim_process_leave(struct sim_machine *machine, uint32_t process);

/* Cleans up after dead processes. Rate limited unless `now` is set. */
void sim_process_sweep(struct sim_machine *machine, bool now);

/* Cleans up at once after dead processes that have anything on this GPU. */
void sim_process_sweep_gpu(struct sim_machine *machine, uint32_t gpu);

/* Whether any process uses the machine. */
bool sim_process_any(struct sim_machine *machine);

#endif
