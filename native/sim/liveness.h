/* Detects which processes are alive and translates their pids, also across pid namespaces of containers. */
#ifndef SIM_LIVENESS_H
#define SIM_LIVENESS_H

#include "machine.h"

/* Whether the process of this row is alive and still runs the same program. */
bool sim_is_alive(const struct sim_machine *machine, const struct sim_process *process);

/* Distinguishes a process from a later one with the same pid: its start time in kernel ticks, and the start of its
 * stack, which changes with exec (0: not readable, process of another user). False: no such process, or a zombie. */
bool sim_identify(uint32_t pid, uint64_t *born, uint64_t *image);

/* The pid namespace of this process. */
uint64_t sim_own_space(void);

/* The pid of a row's process in the caller's pid namespace: the stored pid if both are in the same namespace, otherwise
 * found by a search. 0: not visible. */
uint32_t sim_process_number(const struct sim_process *process);

/* sim_lock_row marks the row as used by this library; sim_unlock_row ends that. */
void sim_lock_row(int row);
void sim_unlock_row(void);

#endif
