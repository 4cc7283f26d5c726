#include "process.h"

#include "clock.h"
#include "ledger.h"
#include "liveness.h"
#include "model.h"
#include "mps.h"
#include "process_state.h"

#include <unistd.h>

enum { SWEEP_NS = 50000000 };

/* Clears a row on every GPU. The caller holds the machine's lock. */
static void clear(struct sim_machine *machine, uint32_t index, bool died) {
  struct sim_process *process = &machine->processes[index];
  if (died) sim_mps_lost(machine, index);
  for (uint32_t i = 0; i < machine->node.boards; i++) {
    struct sim_board *board = &machine->boards[i];
    sim_model_enter(machine, i);
    for (uint32_t t = 0; t < SIM_MAX_TENANTS; t++)
      if (atomic_load(&board->model.tenants[t].used) && board->model.tenants[t].process == index)
        sim_model_close_tenant(&board->model, machine->events, t);
    sim_usage_end(&board->model.usage, index, atomic_load(&process->pid), process->space);
    sim_model_leave(machine, i);
    atomic_store(&process->contexts[i], 0);
  }
  sim_ledger_forget(machine, index);
  uint32_t state = atomic_load(&process->state);
  while (state != SIM_PROCESS_RUNNING && !sim_process_change_state(machine, index, state, SIM_PROCESS_RUNNING))
    state = atomic_load(&process->state);
  atomic_store(&process->ruined, 0);
  atomic_store(&process->managed, 0);
  uint32_t top = atomic_load(&machine->event_top);
  for (uint32_t i = 0; i < top; i++) {
    struct sim_event *event = &machine->events[i];
    if (atomic_load_explicit(&event->owner, memory_order_relaxed) == index + 1) atomic_store(&event->owner, 0);
  }
  process->driver = 0;
  process->users = 0;
  atomic_store(&process->pid, 0);
}

int sim_process_enter(struct sim_machine *machine, bool driver) {
  uint32_t pid = (uint32_t)getpid();
  uint64_t born, image, space = sim_own_space();
  int found = -1;
  if (!sim_identify(pid, &born, &image)) return -1;
  sim_lock_take(&machine->lock);
  for (uint32_t i = 0; i < SIM_MAX_PROCESSES; i++) {
    struct sim_process *process = &machine->processes[i];
    uint32_t other = atomic_load(&process->pid);
    if (other == pid && process->image == image && process->space == space) {
      found = (int)i; /* the other library of this process has registered the row */
      break;
    }
    if (other != 0 && !sim_is_alive(machine, process)) clear(machine, i, true);
    if (found < 0 && atomic_load(&process->pid) == 0) found = (int)i;
  }
  if (found >= 0) {
    struct sim_process *process = &machine->processes[found];
    process->driver |= driver;
    process->users++;
    process->born = born;
    process->image = image;
    process->space = space;
    sim_lock_row(found);
    atomic_store(&process->pid, pid);
  }
  sim_lock_give(&machine->lock);
  return found;
}

void sim_process_leave(struct sim_machine *machine, uint32_t index) {
  struct sim_process *process = &machine->processes[index];
  sim_lock_take(&machine->lock);
  if (atomic_load(&process->pid) == (uint32_t)getpid() && --process->users == 0) clear(machine, index, false);
  sim_lock_give(&machine->lock);
  sim_unlock_row();
}

static void reclaim_if_dead(struct sim_machine *machine, uint32_t index) {
  struct sim_process *process = &machine->processes[index];
  if (atomic_load(&process->pid) == 0 || sim_is_alive(machine, process)) return;
  sim_lock_take(&machine->lock);
  if (atomic_load(&process->pid) != 0 && !sim_is_alive(machine, process)) clear(machine, index, true);
  sim_lock_give(&machine->lock);
}

void sim_process_sweep(struct sim_machine *machine, bool now) {
  uint64_t time = sim_monotonic_ns(), last = atomic_load(&machine->swept_ns);
  if (!now && time - last < SWEEP_NS) return;
  if (!atomic_compare_exchange_strong(&machine->swept_ns, &last, time) && !now) return;
  for (uint32_t i = 0; i < SIM_MAX_PROCESSES; i++)
    reclaim_if_dead(machine, i);
}

void sim_process_sweep_gpu(struct sim_machine *machine, uint32_t gpu) {
  for (uint32_t i = 0; i < SIM_MAX_PROCESSES; i++) {
    const struct sim_process *process = &machine->processes[i];
    if (atomic_load(&process->contexts[gpu]) != 0 || atomic_load(&process->memory[gpu]) != 0)
      reclaim_if_dead(machine, i);
  }
}

bool sim_process_any(struct sim_machine *machine) {
  sim_process_sweep(machine, true);
  for (uint32_t i = 0; i < SIM_MAX_PROCESSES; i++)
    if (atomic_load(&machine->processes[i].pid) != 0) return true;
  return false;
}
