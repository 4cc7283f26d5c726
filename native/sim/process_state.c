#include "process_state.h"

#include <limits.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

bool sim_process_change_state(struct sim_machine *machine, uint32_t index, uint32_t from, uint32_t to) {
  struct sim_process *process = &machine->processes[index];
  uint32_t found = from;
  if (from == SIM_PROCESS_RUNNING) atomic_fetch_add(&machine->exceptions, 1);
  bool changed = atomic_compare_exchange_strong(&process->state, &found, to);
  if (changed ? to == SIM_PROCESS_RUNNING : from == SIM_PROCESS_RUNNING) atomic_fetch_sub(&machine->exceptions, 1);
  if (changed) syscall(SYS_futex, &process->state, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
  return changed;
}

void sim_process_wait_running(struct sim_machine *machine, uint32_t index) {
  struct sim_process *process = &machine->processes[index];
  uint32_t state;
  while ((state = atomic_load(&process->state)) != SIM_PROCESS_RUNNING)
    syscall(SYS_futex, &process->state, FUTEX_WAIT, state, NULL, NULL, 0);
}
