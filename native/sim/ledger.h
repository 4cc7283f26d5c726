/* Memory of each GPU by process and object. The rows of processes and objects are authoritative; the board's total is
 * their sum. */
#ifndef SIM_LEDGER_H
#define SIM_LEDGER_H

#include "machine.h"

/* Memory of a GPU that programs can allocate. */
uint64_t sim_ledger_capacity(const struct sim_machine *machine, uint32_t gpu);

/* The memory in use on a GPU, without the driver's own reserve. */
uint64_t sim_ledger_used(struct sim_machine *machine, uint32_t gpu);

/* sim_ledger_take charges a process; false: the GPU has too little memory, or a limit of a control group forbids it.
 * sim_ledger_give refunds it. Both wait while the process is locked or checkpointed. */
bool sim_ledger_take(struct sim_machine *machine, uint32_t process, uint32_t gpu, uint64_t bytes);
void sim_ledger_give(struct sim_machine *machine, uint32_t process, uint32_t gpu, uint64_t bytes);

/* The same for managed memory, which no limit of a control group counts. */
bool sim_ledger_take_managed(struct sim_machine *machine, uint32_t process, uint32_t gpu, uint64_t bytes);
void sim_ledger_give_managed(struct sim_machine *machine, uint32_t process, uint32_t gpu, uint64_t bytes);

struct sim_ledger_view {
  uint64_t total, used;
};

/* The memory of a GPU that programs can allocate, and the part of it in use. */
struct sim_ledger_view sim_ledger_whole(struct sim_machine *machine, uint32_t gpu);

/* The limit of a process's control group on a GPU, and the part of it that cannot be allocated any more. False: the
 * driver shows no limit to it. */
bool sim_ledger_limited(struct sim_machine *machine, uint32_t process, uint32_t gpu, struct sim_ledger_view *view);

/* sim_ledger_evacuate moves the memory of a process from a GPU to the host and returns the bytes. sim_ledger_return
 * moves it back; false: the GPU has too little memory. */
uint64_t sim_ledger_evacuate(struct sim_machine *machine, uint32_t process, uint32_t gpu);
bool sim_ledger_return(struct sim_machine *machine, uint32_t process, uint32_t gpu);

/* Whether the process holds memory that it exported or imported. */
bool sim_ledger_is_shared(const struct sim_machine *machine, uint32_t process);

/* Memory of a process as NVML reports it: its row, and objects whose first holder it is. */
uint64_t sim_ledger_of(struct sim_machine *machine, uint32_t process, uint32_t gpu);

/* Converts memory of one process to a shared object. Returns its index, or -1. */
int sim_ledger_share(struct sim_machine *machine, uint32_t process, uint32_t gpu, uint64_t bytes, uint64_t inode);

/* The pool of a descriptor, found by inode; -1: none. */
int sim_ledger_find(struct sim_machine *machine, uint64_t inode);

/* sim_ledger_hold adds a reference (false: the object no longer exists), sim_ledger_drop removes one. */
bool sim_ledger_hold(struct sim_machine *machine, uint32_t process, uint32_t object, uint64_t id);
void sim_ledger_drop(struct sim_machine *machine, uint32_t process, uint32_t object);

/* Removes all memory of a process. */
void sim_ledger_forget(struct sim_machine *machine, uint32_t process);

#endif
