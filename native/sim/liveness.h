/*
 * Which processes live, and what their numbers are: also across pid namespaces, as containers have them.
 */
#ifndef SIM_LIVENESS_H
#define SIM_LIVENESS_H

#include "machine.h"

/* Does the process of this row live, and still run the program that it ran? */
bool sim_is_alive(const struct sim_machine *machine, const struct sim_process *process);

/*
 * What tells a process from a later one of the same number: when it started, in the kernel's ticks, and where its stack
 * begins, which exec changes (0: not to be read, another user's process). False: there is none, or it is a zombie.
 */
bool sim_identify(uint32_t pid, uint64_t *born, uint64_t *image);

/* The pid namespace of this process. */
uint64_t sim_own_space(void);

/*
 * The number of a row's process in the pid namespace of the caller: what it says itself where both are in one, else it
 * is looked for. 0: not to be seen from here.
 */
uint32_t sim_process_number(const struct sim_process *process);

/* This library uses the machine from now on, under this row; and no more. */
void sim_hold_life(int row);
void sim_let_go_of_life(void);

#endif
