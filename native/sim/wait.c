#include "wait.h"

#include "clock.h"
#include "model.h"
#include "process.h"

#include <unistd.h>

enum { BLOCKED_NS = 5000 };

void sim_touch_others(struct sim_machine *machine, uint32_t gpu) {
  for (uint32_t i = 0; i < machine->node.boards; i++)
    if (i != gpu) sim_model_touch(machine, i);
}

/* CUDA's default: a waiting thread spins while there are no more contexts than CPUs. */
static enum sim_patience patience_on(const struct sim_model *gpu, bool blocking) {
  static _Atomic long processors;
  if (blocking) return SIM_SLEEP;
  if (atomic_load(&processors) == 0) atomic_store(&processors, sysconf(_SC_NPROCESSORS_ONLN));
  return atomic_load(&gpu->tenant_count) > atomic_load(&processors) ? SIM_YIELD : SIM_SPIN;
}

bool sim_wait_channel(struct sim_machine *machine, uint32_t gpu, uint32_t channel, uint64_t ticket, bool blocking) {
  struct sim_board *board = &machine->boards[gpu];
  const struct sim_channel *awaited = &board->model.channels[channel];
  uint64_t look_ns = 0;
  while (atomic_load_explicit(&awaited->done, memory_order_acquire) < ticket) {
    if (atomic_load(&board->lost)) return false;
    if (look_ns == SIM_NEVER || sim_now(machine) >= look_ns) {
      sim_process_sweep(machine, false);
      if (look_ns == SIM_NEVER) sim_touch_others(machine, gpu);
      sim_model_enter(machine, gpu);
      look_ns = sim_model_earliest(&board->model, machine->events, channel, ticket);
      bool done = atomic_load_explicit(&awaited->done, memory_order_acquire) >= ticket;
      sim_model_leave(machine, gpu);
      if (done) return true;
      /* The operation could be complete, but other work delays it for an unknown time. */
      uint64_t now = sim_now(machine);
      if (look_ns <= now) look_ns = now + BLOCKED_NS;
    }
    sim_clock_wait(machine, look_ns, patience_on(&board->model, blocking));
  }
  return true;
}

bool sim_event_is_reached(struct sim_machine *machine, uint32_t event, uint64_t ticket) {
  struct sim_event *awaited = &machine->events[event];
  if (atomic_load_explicit(&awaited->reached, memory_order_acquire) >= ticket) return true;
  sim_touch_others(machine, awaited->gpu);
  sim_model_enter(machine, awaited->gpu);
  sim_model_leave(machine, awaited->gpu);
  return atomic_load_explicit(&awaited->reached, memory_order_acquire) >= ticket;
}

void sim_wait_event(struct sim_machine *machine, uint32_t event, uint64_t ticket, bool blocking) {
  struct sim_event *awaited = &machine->events[event];
  while (atomic_load_explicit(&awaited->reached, memory_order_acquire) < ticket) {
    uint32_t gpu = awaited->gpu;
    if (atomic_load(&machine->boards[gpu].lost)) return;
    if (ticket == atomic_load(&awaited->recorded))
      sim_wait_channel(machine, gpu, awaited->channel, awaited->place, blocking);
    else if (!sim_event_is_reached(machine, event, ticket))
      sim_clock_wait(machine, sim_now(machine) + 20000, SIM_SLEEP);
    sim_process_sweep(machine, false);
  }
}
