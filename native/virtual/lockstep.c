/*
 * Runs programs of one thread in one virtual time. Preloaded (LD_PRELOAD), it replaces the clocks and the sleeps of
 * libc. One program at a time runs: the one whose time is the earliest. So a run does not depend on the load of the
 * host, and always has the same result.
 *
 * A program gives the turn away when it sleeps. Until then its time advances by READ_NS whenever it reads the clock,
 * which stands for its own work.
 *
 *     LOCKSTEP_FILE   shared by the programs: a file of zeroes of at least one page
 *     LOCKSTEP_COUNT  so many programs begin together
 *     LOCKSTEP_NUMBER the number of this one, which decides between equal times; 0 where absent
 *     LOCKSTEP_LATE   this program joins at its first sleep, and starts the others before
 */
#define _GNU_SOURCE
#include "lockstep.h"
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { READ_NS = 400, YIELD_NS = 3000, POLL_NS = 10000 };
static const uint64_t SECOND_NS = 1000000000, BEGIN_NS = 1000000000000;

static struct lockstep *shared;
static uint32_t self;
static bool has_joined;
static uint64_t now_ns;
static long (*real_syscall)(long, ...);

/* Constructors of other libraries may call before that of this one. */
static void find(void) {
  if (real_syscall == NULL) real_syscall = (long (*)(long, ...))dlsym(RTLD_NEXT, "syscall");
}

/* Passes the turn to the program with the earliest time. */
static void pass_turn(void) {
  uint32_t next = LOCKSTEP_MOST;
  uint64_t earliest = UINT64_MAX;
  for (uint32_t i = 0; i < LOCKSTEP_MOST; i++) {
    if (atomic_load(&shared->programs[i].pid) == 0) continue;
    uint64_t at_ns = atomic_load(&shared->programs[i].at_ns);
    if (at_ns >= earliest) continue;
    earliest = at_ns;
    next = i;
  }
  if (next == LOCKSTEP_MOST) return;
  atomic_store(&shared->turn, next + 1);
  if (next != self) real_syscall(SYS_futex, &shared->turn, FUTEX_WAKE, LOCKSTEP_MOST, NULL, NULL, 0);
}

/* A program that was killed while it ran, or while it waited, takes no further part. */
static void bury(uint32_t program) {
  uint32_t pid = atomic_load(&shared->programs[program].pid);
  if (pid == 0 || kill((pid_t)pid, 0) == 0 || errno != ESRCH) return;
  atomic_store(&shared->programs[program].pid, 0);
  pass_turn();
}

static void await_turn(void) {
  uint32_t turn;
  while ((turn = atomic_load(&shared->turn)) != self + 1) {
    const struct timespec limit = {.tv_nsec = 20000000};
    long woken = real_syscall(SYS_futex, &shared->turn, FUTEX_WAIT, turn, &limit, NULL, 0);
    if (woken != 0 && errno == ETIMEDOUT && turn != 0) bury(turn - 1);
  }
}

static void join(void) {
  if (has_joined || shared == NULL) return;
  has_joined = true;
  uint32_t count = (uint32_t)atoi(getenv("LOCKSTEP_COUNT"));
  const char *number = getenv("LOCKSTEP_NUMBER");
  self = number == NULL ? 0 : (uint32_t)atoi(number);
  if (self >= LOCKSTEP_MOST || count > LOCKSTEP_MOST) abort();
  now_ns = BEGIN_NS + self;
  atomic_store(&shared->programs[self].at_ns, now_ns);
  atomic_store(&shared->programs[self].pid, (uint32_t)getpid());
  if (atomic_fetch_add(&shared->joined, 1) + 1 == count) pass_turn();
  await_turn();
}

static void sleep_until(uint64_t at_ns) {
  join();
  if (at_ns > now_ns) now_ns = at_ns;
  atomic_store(&shared->programs[self].at_ns, now_ns);
  pass_turn();
  await_turn();
  /* Another program may have stopped this one until later. */
  now_ns = atomic_load(&shared->programs[self].at_ns);
}

__attribute__((constructor)) static void begin(void) {
  const char *path = getenv("LOCKSTEP_FILE");
  find();
  if (path == NULL) return;
  int fd = open(path, O_RDWR | O_CLOEXEC);
  void *memory = fd < 0 ? MAP_FAILED : mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (memory == MAP_FAILED) abort();
  close(fd);
  shared = memory;
  now_ns = BEGIN_NS;
  if (getenv("LOCKSTEP_LATE") == NULL) join();
}

static void leave(void) {
  if (!has_joined || atomic_load(&shared->programs[self].pid) != (uint32_t)getpid()) return;
  atomic_store(&shared->programs[self].pid, 0);
  pass_turn();
}

__attribute__((destructor)) static void end(void) {
  leave();
}

__attribute__((visibility("default"), noreturn)) void _Exit(int status) {
  leave();
  for (;;)
    real_syscall(SYS_exit_group, status);
}

__attribute__((visibility("default"))) int clock_gettime(clockid_t clock, struct timespec *time) {
  find();
  if (shared == NULL) return (int)real_syscall(SYS_clock_gettime, clock, time);
  now_ns += READ_NS;
  time->tv_sec = (time_t)(now_ns / SECOND_NS);
  time->tv_nsec = (long)(now_ns % SECOND_NS);
  return 0;
}

__attribute__((visibility("default"))) int clock_nanosleep(clockid_t clock, int flags, const struct timespec *request,
                                                           struct timespec *remain) {
  (void)clock, (void)remain;
  find();
  uint64_t ns = (uint64_t)request->tv_sec * SECOND_NS + (uint64_t)request->tv_nsec;
  if (shared == NULL) return (int)real_syscall(SYS_clock_nanosleep, clock, flags, request, remain);
  sleep_until(flags & TIMER_ABSTIME ? ns : now_ns + ns);
  return 0;
}

__attribute__((visibility("default"))) int nanosleep(const struct timespec *request, struct timespec *remain) {
  return clock_nanosleep(CLOCK_MONOTONIC, 0, request, remain);
}

__attribute__((visibility("default"))) int sched_yield(void) {
  if (shared != NULL) sleep_until(now_ns + YIELD_NS);
  return 0;
}

/* A waiting thread yields the CPU instead of spinning, because a spinning one would not let the others run. */
__attribute__((visibility("default"))) long sysconf(int name) {
  static long (*real_sysconf)(int);
  if (real_sysconf == NULL) real_sysconf = (long (*)(int))dlsym(RTLD_NEXT, "sysconf");
  return name == _SC_NPROCESSORS_ONLN && shared != NULL ? 0 : real_sysconf(name);
}

/* A futex is polled. */
static long wait_for_word(_Atomic uint32_t *word, int call, uint32_t value, const struct timespec *limit) {
  uint64_t until = limit == NULL ? UINT64_MAX : (uint64_t)limit->tv_sec * SECOND_NS + (uint64_t)limit->tv_nsec;
  bool absolute = (call & FUTEX_CMD_MASK) == FUTEX_WAIT_BITSET;
  if (limit != NULL && !absolute) until += now_ns;
  while (atomic_load(word) == value) {
    if (now_ns >= until) {
      errno = ETIMEDOUT;
      return -1;
    }
    sleep_until(until - now_ns > POLL_NS ? now_ns + POLL_NS : until);
  }
  return 0;
}

__attribute__((visibility("default"))) long syscall(long number, ...) {
  find();
  long a[6];
  va_list list;
  va_start(list, number);
  for (int i = 0; i < 6; i++)
    a[i] = va_arg(list, long);
  va_end(list);
  int call = (int)a[1] & FUTEX_CMD_MASK;
  if (shared != NULL && number == SYS_clock_nanosleep)
    return clock_nanosleep((clockid_t)a[0], (int)a[1], (const struct timespec *)a[2], NULL);
  if (shared != NULL && number == SYS_futex && (call == FUTEX_WAIT || call == FUTEX_WAIT_BITSET))
    return wait_for_word((_Atomic uint32_t *)a[0], (int)a[1], (uint32_t)a[2], (const struct timespec *)a[3]);
  return real_syscall(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}
