/* Injected faults: errors that calls return, NVML events, and the loss of a GPU. */
#ifndef SIM_FAULT_H
#define SIM_FAULT_H

#include "machine.h"

enum { SIM_ERROR_LOST = 999 }; /* CUDA_ERROR_UNKNOWN, returned by calls on a lost GPU */

/* The error that a call must return now, or 0. Check machine->fault_count first, because this lookup is slow. `gpu` -1:
 * the call has no GPU. */
uint32_t sim_fault_of(struct sim_machine *machine, const char *call, int gpu);

/* Makes a call fail. A later command for the same call and GPU replaces an earlier one. False: too many faults. */
bool sim_fault_set(struct sim_machine *machine, const char *call, int gpu, uint32_t code, int64_t times);

/* Removes the faults of a call; NULL: all faults. */
void sim_fault_clear(struct sim_machine *machine, const char *call);

/* Publishes an event to NVML's event sets. */
void sim_nvml_event_publish(struct sim_machine *machine, uint32_t gpu, uint64_t type, uint64_t data);

/* Waits at most `limit_ns` until there are more events than `seen`. */
void sim_nvml_event_wait(struct sim_machine *machine, uint32_t seen, uint64_t limit_ns);

/* sim_model_lose: the GPU falls off the bus; its calls fail and its queued work is lost. sim_model_restore: the GPU
 * returns without work. */
void sim_model_lose(struct sim_machine *machine, uint32_t gpu);
void sim_model_restore(struct sim_machine *machine, uint32_t gpu);

#endif
