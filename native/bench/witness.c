/*
 * Measures how long the machine kept programs from running, so that benchmarks can separate their results from
 * disturbances of the machine.
 *
 *     witness PID...
 *
 * For each line of its input it prints one line with a number per program: the ns since the start in which the program
 * was delayed. A program is delayed while it is runnable and waits for a CPU (/proc/PID/schedstat), and while a CPU of
 * a virtual machine does not run at all. Delays shorter than LEAST_NS are ignored. The program ends at the end of its
 * input.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define SAMPLE_NS 4000000ull
#define LEAST_NS 4000000ull
#define MOST_PROGRAMS 64
#define NS_PER_SECOND 1000000000ull

struct program {
  int schedstat;
  uint64_t waited_ns; /* as counted by the kernel */
  uint64_t held_up_ns;
};

static struct program programs[MOST_PROGRAMS];
static int count;
static uint64_t longest_pause_ns; /* of any CPU since the last sample */

static uint64_t now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (uint64_t)time.tv_sec * NS_PER_SECOND + (uint64_t)time.tv_nsec;
}

/* Sleeps until `at` and returns the delay of the wake-up. */
static uint64_t sleep_until(uint64_t at) {
  struct timespec time = {.tv_sec = (time_t)(at / NS_PER_SECOND), .tv_nsec = (long)(at % NS_PER_SECOND)};
  clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, NULL);
  uint64_t woke = now();
  return woke > at ? woke - at : 0;
}

static void note_pause(uint64_t pause) {
  uint64_t longest = __atomic_load_n(&longest_pause_ns, __ATOMIC_RELAXED);
  while (pause > longest &&
         !__atomic_compare_exchange_n(&longest_pause_ns, &longest, pause, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
  }
}

/* One thread per CPU with the highest priority: if it wakes late, the CPU was stopped. */
static void *watch_cpu(void *number) {
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET((size_t)(uintptr_t)number, &one);
  if (sched_setaffinity(0, sizeof one, &one) != 0) return NULL;
  struct sched_param first = {.sched_priority = 1};
  /* Without the right to use SCHED_FIFO the thread would only measure how busy the CPU is. */
  if (sched_setscheduler(0, SCHED_FIFO, &first) != 0) return NULL;
  for (;;)
    note_pause(sleep_until(now() + SAMPLE_NS));
}

static uint64_t waited(const struct program *program) {
  char text[96];
  unsigned long long ran, ready;
  ssize_t length = pread(program->schedstat, text, sizeof text - 1, 0);
  if (length <= 0) return program->waited_ns;
  text[length] = '\0';
  return sscanf(text, "%llu %llu", &ran, &ready) == 2 ? ready : program->waited_ns;
}

static void look(void) {
  uint64_t pause = __atomic_exchange_n(&longest_pause_ns, 0, __ATOMIC_RELAXED);
  for (int i = 0; i < count; i++) {
    uint64_t by_now = waited(&programs[i]);
    uint64_t held_up = by_now - programs[i].waited_ns;
    programs[i].waited_ns = by_now;
    if (pause > held_up) held_up = pause;
    if (held_up >= LEAST_NS) programs[i].held_up_ns += held_up;
  }
}

static void answer(void) {
  for (int i = 0; i < count; i++)
    printf("%s%llu", i == 0 ? "" : " ", (unsigned long long)programs[i].held_up_ns);
  printf("\n");
  fflush(stdout);
}

int main(int argc, char **argv) {
  for (; count < argc - 1 && count < MOST_PROGRAMS; count++) {
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/schedstat", atoi(argv[count + 1]));
    programs[count].schedstat = open(path, O_RDONLY | O_CLOEXEC);
    programs[count].waited_ns = waited(&programs[count]);
  }
  for (long processor = 0; processor < sysconf(_SC_NPROCESSORS_ONLN); processor++) {
    pthread_t thread;
    pthread_create(&thread, NULL, watch_cpu, (void *)processor);
  }
  struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
  for (;;) {
    char text[16];
    if (poll(&input, 1, (int)(SAMPLE_NS / 1000000)) == 1) {
      if (read(STDIN_FILENO, text, sizeof text) <= 0) return 0;
      look();
      answer();
    } else {
      look();
    }
  }
}
