/* The state of a process: running, or locked, checkpointed and failed by checkpoint.c. */
#ifndef SIM_PROCESS_STATE_H
#define SIM_PROCESS_STATE_H

#include "machine.h"

/* Changes the state of a process from one CUprocessState to another and wakes its waiting threads. False: it was not in
 * that state. */
bool sim_process_change_state(struct sim_machine *machine, uint32_t process, uint32_t from, uint32_t to);

/* Waits while the process is locked, checkpointed or failed. */
void sim_process_wait_running(struct sim_machine *machine, uint32_t process);

#endif
