/*
 * What happens on command: errors that calls return, news of the GPU, a GPU that disappears.
 */
#ifndef SIM_FAULT_H
#define SIM_FAULT_H

#include "machine.h"

enum { SIM_ERROR_LOST = 999 }; /* CUDA_ERROR_UNKNOWN: what calls on a lost GPU return */

/* The error that a call shall return now, or 0. Look at machine->fault_count first: this one is slow. `GPU` -1: of
 * none. */
uint32_t sim_fault_of(struct sim_machine *machine, const char *call, int gpu);

/* Makes a call fail; the last command for a call and GPU holds. False: too many. */
bool sim_fault_set(struct sim_machine *machine, const char *call, int gpu, uint32_t code, int64_t times);

/* Takes back the faults of a call; NULL: of all. */
void sim_fault_clear(struct sim_machine *machine, const char *call);

/* Tells NVML's listeners. */
void sim_news_tell(struct sim_machine *machine, uint32_t gpu, uint64_t type, uint64_t data);

/* Waits until there is more news than `seen`, at most `limit_ns`. */
void sim_news_wait(struct sim_machine *machine, uint32_t seen, uint64_t limit_ns);

/* The GPU falls off the bus: calls that need it fail, what it had to do is lost. And comes back, empty. */
void sim_model_lose(struct sim_machine *machine, uint32_t gpu);
void sim_model_restore(struct sim_machine *machine, uint32_t gpu);

#endif
