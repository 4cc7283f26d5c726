/*
 * The memory of each GPU by process and object. Rows of processes and objects are the truth; a board's total is their
 * sum.
 */
#ifndef SIM_LEDGER_H
#define SIM_LEDGER_H

#include "machine.h"

/* What programs can have of a GPU. */
uint64_t sim_ledger_capacity(const struct sim_machine *machine, uint32_t gpu);

/* The memory in use on a GPU, without what the driver reserves for itself. */
uint64_t sim_ledger_used(struct sim_machine *machine, uint32_t gpu);

/* Takes memory for a process; false: the GPU has not that much left. */
bool sim_ledger_take(struct sim_machine *machine, uint32_t process, uint32_t gpu, uint64_t bytes);
void sim_ledger_give(struct sim_machine *machine, uint32_t process, uint32_t gpu, uint64_t bytes);

/* What NVML says of a process: its row, and the objects that it is the first to hold. */
uint64_t sim_ledger_of(struct sim_machine *machine, uint32_t process, uint32_t gpu);

/* Makes an object of memory that the process holds alone. Returns its number, or -1. */
int sim_ledger_share(struct sim_machine *machine, uint32_t process, uint32_t gpu, uint64_t bytes, uint64_t inode);

/* The pool that a descriptor stands for, by its inode; -1: none. */
int sim_ledger_find(struct sim_machine *machine, uint64_t inode);

/* One more and one fewer reference. False from `hold`: no such object any more. */
bool sim_ledger_hold(struct sim_machine *machine, uint32_t process, uint32_t object, uint64_t id);
void sim_ledger_drop(struct sim_machine *machine, uint32_t process, uint32_t object);

/* All that a process had. */
void sim_ledger_forget(struct sim_machine *machine, uint32_t process);

#endif
