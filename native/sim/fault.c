#include "fault.h"

#include "model.h"

#include <limits.h>
#include <linux/futex.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* A name that ends in a star matches all calls with that prefix; any other name also matches its variants (cuMemAlloc
 * matches cuMemAlloc_v2). */
static bool is_meant(const char *name, const char *call) {
  size_t length = strlen(name);
  if (length > 0 && name[length - 1] == '*') return strncmp(name, call, length - 1) == 0;
  return strncmp(name, call, length) == 0 && (call[length] == 0 || call[length] == '_');
}

/* The caller holds the machine's lock. */
static void remove_fault(struct sim_machine *machine, uint32_t at) {
  uint32_t count = atomic_load(&machine->fault_count);
  machine->faults[at] = machine->faults[count - 1];
  atomic_store(&machine->fault_count, count - 1);
  atomic_fetch_sub(&machine->exceptions, 1);
}

uint32_t sim_fault_of(struct sim_machine *machine, const char *call, int gpu) {
  uint32_t code = 0;
  sim_lock_take(&machine->lock);
  for (uint32_t i = 0; i < atomic_load(&machine->fault_count) && code == 0; i++) {
    struct sim_fault *fault = &machine->faults[i];
    if (!is_meant(fault->name, call) || (fault->gpu >= 0 && fault->gpu != gpu)) continue;
    code = fault->code;
    if (fault->remaining > 0 && --fault->remaining == 0) remove_fault(machine, i);
  }
  sim_lock_give(&machine->lock);
  return code;
}

bool sim_fault_set(struct sim_machine *machine, const char *call, int gpu, uint32_t code, int64_t times) {
  bool room = strlen(call) < SIM_FAULT_NAME;
  sim_lock_take(&machine->lock);
  uint32_t count = atomic_load(&machine->fault_count), at = 0;
  while (at < count && (strcmp(machine->faults[at].name, call) != 0 || machine->faults[at].gpu != gpu))
    at++;
  room = room && at < SIM_MAX_FAULTS;
  if (room) {
    struct sim_fault *fault = &machine->faults[at];
    memset(fault->name, 0, sizeof fault->name);
    memcpy(fault->name, call, strlen(call));
    fault->gpu = gpu;
    fault->code = code;
    fault->remaining = times;
    if (at == count) {
      atomic_store(&machine->fault_count, count + 1);
      atomic_fetch_add(&machine->exceptions, 1);
    }
  }
  sim_lock_give(&machine->lock);
  return room;
}

void sim_fault_clear(struct sim_machine *machine, const char *call) {
  sim_lock_take(&machine->lock);
  for (uint32_t i = atomic_load(&machine->fault_count); i-- > 0;)
    if (call == NULL || strcmp(machine->faults[i].name, call) == 0) remove_fault(machine, i);
  sim_lock_give(&machine->lock);
}

void sim_nvml_event_publish(struct sim_machine *machine, uint32_t gpu, uint64_t type, uint64_t data) {
  sim_lock_take(&machine->lock);
  uint32_t count = atomic_load(&machine->nvml_event_count);
  machine->nvml_events[count % SIM_NVML_EVENTS] = (struct sim_nvml_event){.type = type, .data = data, .gpu = gpu};
  atomic_store(&machine->nvml_event_count, count + 1);
  sim_lock_give(&machine->lock);
  syscall(SYS_futex, &machine->nvml_event_count, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

void sim_nvml_event_wait(struct sim_machine *machine, uint32_t seen, uint64_t limit_ns) {
  struct timespec limit = {.tv_sec = (time_t)(limit_ns / 1000000000u), .tv_nsec = (long)(limit_ns % 1000000000u)};
  syscall(SYS_futex, &machine->nvml_event_count, FUTEX_WAIT, seen, &limit, NULL, 0);
}

void sim_model_lose(struct sim_machine *machine, uint32_t gpu) {
  struct sim_board *board = &machine->boards[gpu];
  atomic_store(&board->lost, 1);
  sim_model_enter(machine, gpu);
  for (uint32_t i = 0; i < SIM_MAX_TENANTS; i++)
    if (atomic_load(&board->model.tenants[i].used)) sim_model_abandon(&board->model, machine->events, i);
  sim_model_leave(machine, gpu);
}

void sim_model_restore(struct sim_machine *machine, uint32_t gpu) {
  /* Contexts created before the loss stay failed; only new ones work. */
  struct sim_board *board = &machine->boards[gpu];
  sim_model_enter(machine, gpu);
  for (uint32_t i = 0; i < SIM_MAX_TENANTS; i++)
    if (atomic_load(&board->model.tenants[i].used)) atomic_store(&board->model.tenants[i].error, SIM_ERROR_LOST);
  sim_model_leave(machine, gpu);
  atomic_store(&board->lost, 0);
}
