#include "clock.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
  SPIN_NS = 120000, /* how late a sleep ends on a busy machine */
  /* longest wait without checking for unpredictable events (a competitor ends, another process submits work) */
  NOTICE_NS = 5000000,
  POLL_NS = 50000,
};

uint64_t sim_wall_clock_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

uint64_t sim_stamp_us(const struct sim_machine *machine, uint64_t time_ns) {
  return (machine->epoch_ns + time_ns) / 1000;
}

static void sleep_ns(uint64_t duration_ns) {
  struct timespec duration = {.tv_sec = (time_t)(duration_ns / 1000000000u),
                              .tv_nsec = (long)(duration_ns % 1000000000u)};
  clock_nanosleep(CLOCK_MONOTONIC, 0, &duration, NULL);
}

static void relax(void) {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("yield");
#endif
}

static void wait_real(uint64_t until_ns, enum sim_patience patience) {
  if (until_ns == SIM_NEVER) {
    sleep_ns(POLL_NS);
    return;
  }
  uint64_t now = sim_monotonic_ns();
  uint64_t ahead = until_ns > now ? until_ns - now : 0;
  if (ahead > NOTICE_NS) ahead = NOTICE_NS;
  if (patience == SIM_SLEEP)
    sleep_ns(ahead > 1000 ? ahead : 1000);
  else if (ahead > SPIN_NS)
    sleep_ns(ahead - SPIN_NS);
  else if (patience == SIM_YIELD)
    sched_yield();
  else
    relax();
}

static void wake(struct sim_machine *machine) {
  atomic_fetch_add(&machine->virtual_ticks, 1);
  syscall(SYS_futex, &machine->virtual_ticks, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

void sim_clock_advance(struct sim_machine *machine, uint64_t by_ns) {
  atomic_fetch_add(&machine->virtual_ns, by_ns);
  wake(machine);
}

/* Moves the clock forward to a time, unless it is already there. */
static void jump(struct sim_machine *machine, uint64_t to_ns) {
  uint64_t now = atomic_load(&machine->virtual_ns);
  while (now < to_ns && !atomic_compare_exchange_weak(&machine->virtual_ns, &now, to_ns)) {
  }
}

void sim_clock_spend(struct sim_machine *machine, uint64_t duration_ns) {
  uint64_t until_ns = sim_now(machine) + duration_ns;
  if (machine->clock == SIM_CLOCK_JUMP) jump(machine, until_ns);
  while (machine->clock == SIM_CLOCK_REAL && sim_monotonic_ns() < until_ns)
    relax();
}

void sim_clock_wait(struct sim_machine *machine, uint64_t until_ns, enum sim_patience patience) {
  if (machine->clock == SIM_CLOCK_REAL) {
    wait_real(until_ns, patience);
  } else if (machine->clock == SIM_CLOCK_JUMP) {
    /* The end is unknown: this process or another GPU must act first. Advance the clock a little meanwhile. */
    if (until_ns == SIM_NEVER) sleep_ns(POLL_NS);
    jump(machine, until_ns == SIM_NEVER ? sim_now(machine) + POLL_NS : until_ns);
  } else if (until_ns > sim_now(machine)) {
    uint32_t ticks = atomic_load(&machine->virtual_ticks);
    struct timespec limit = {.tv_nsec = NOTICE_NS};
    syscall(SYS_futex, &machine->virtual_ticks, FUTEX_WAIT, ticks, &limit, NULL, 0);
  }
}
