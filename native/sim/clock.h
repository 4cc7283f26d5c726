/* The simulated time in ns, and waiting for it. */
#ifndef SIM_CLOCK_H
#define SIM_CLOCK_H

#include "machine.h"

#include <time.h>

static inline uint64_t sim_monotonic_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static inline uint64_t sim_now(const struct sim_machine *machine) {
  if (__builtin_expect(machine->clock == SIM_CLOCK_REAL, 1)) return sim_monotonic_ns();
  return atomic_load(&machine->virtual_ns);
}

uint64_t sim_wall_clock_ns(void);

/* Simulated time as wall clock in us, the format of NVML's samples. */
uint64_t sim_stamp_us(const struct sim_machine *machine, uint64_t time_ns);

/* Advances a virtual clock. */
void sim_clock_advance(struct sim_machine *machine, uint64_t by_ns);

/* Takes this much of the calling thread's time, as a call of a real driver does. */
void sim_clock_spend(struct sim_machine *machine, uint64_t duration_ns);

enum sim_patience {
  SIM_SLEEP, /* sleep until the end; late by the latency of the machine's timers */
  SIM_YIELD, /* sleep, then yield the CPU for the last SPIN_NS */
  SIM_SPIN,  /* sleep, then spin for the last SPIN_NS */
};

/*
 * Waits until about `until_ns`, the expected time of an event (SIM_NEVER: unknown). May return too early, never much
 * too late. In virtual time it either waits for another process to advance the clock, or advances it, depending on the
 * clock mode.
 */
void sim_clock_wait(struct sim_machine *machine, uint64_t until_ns, enum sim_patience patience);

#endif
