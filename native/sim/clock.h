/*
 * The model's time in nanoseconds, and waiting for it.
 */
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

/* The model's time as wall clock, as NVML stamps its samples. */
uint64_t sim_stamp_us(const struct sim_machine *machine, uint64_t time_ns);

/* Moves a virtual clock on. */
void sim_clock_advance(struct sim_machine *machine, uint64_t by_ns);

enum sim_patience {
  SIM_SLEEP, /* sleep to the end; comes late by what the machine's timers are late */
  SIM_YIELD, /* sleep, and let others run while the last stretch passes */
  SIM_SPIN,  /* sleep, and spin through the last stretch */
};

/*
 * Lets time pass until about `until_ns`: what is waited for is expected then and not before (SIM_NEVER: nobody knows).
 * May come back too early, never much too late. A virtual clock is waited for, or moved, as its kind says.
 */
void sim_clock_wait(struct sim_machine *machine, uint64_t until_ns, enum sim_patience patience);

#endif
