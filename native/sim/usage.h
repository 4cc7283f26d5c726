/*
 * Utilisation of a GPU and its processes in sampling windows. Pure: the caller passes the time.
 *
 * A window lasts 1/6 s. Its utilisation is available only after it has ended, in whole percent, as NVML reports it for
 * a real GPU.
 */
#ifndef SIM_USAGE_H
#define SIM_USAGE_H

#include <stdbool.h>
#include <stdint.h>

enum {
  SIM_WINDOW_NS = 166666667,
  SIM_WINDOWS = 128,        /* stored windows of the GPU */
  SIM_PROCESS_WINDOWS = 16, /* stored windows of each process */
  SIM_MAX_PROCESSES = 256,
  SIM_REPORTED_WINDOWS = 360, /* the newest window of a process is reported for a minute, also after its end */
  SIM_MAX_ENDED = 256,        /* stored processes that have ended */
};

struct sim_ended_usage {
  uint64_t window; /* number of the newest window of the process; 0: none */
  uint64_t space;  /* pid namespace of `pid` */
  uint32_t pid;
  uint8_t percent;
};

struct sim_process_usage {
  uint64_t busy_ns;   /* time with running kernels since the process started */
  uint64_t window_ns; /* part of it in the current window */
  uint64_t window;    /* number of the newest stored window; 0: none */
  uint8_t percent[SIM_PROCESS_WINDOWS];
};

struct sim_usage {
  uint64_t origin_ns; /* window n ends at origin + n windows */
  uint64_t window;    /* number of the current window; the first is 1 */
  uint64_t busy_ns;   /* part of the current window with a kernel on the GPU */
  uint64_t copy_ns;   /* part of the current window with a copy in progress */
  uint64_t total_busy_ns;
  uint8_t busy[SIM_WINDOWS]; /* percent of window n, at n modulo SIM_WINDOWS */
  uint8_t copy[SIM_WINDOWS];
  struct sim_process_usage process[SIM_MAX_PROCESSES];
  struct sim_ended_usage ended[SIM_MAX_ENDED]; /* the newest at ended_count - 1 modulo SIM_MAX_ENDED */
  uint64_t ended_count;
};

void sim_usage_begin(struct sim_usage *usage, uint64_t now_ns);

/* End of the current window. A call of sim_usage_pass must not cross it. */
uint64_t sim_usage_window_end(const struct sim_usage *usage);

/* Accounts for `duration_ns` up to `now_ns`. `process` had kernels on the GPU; -1: none. */
void sim_usage_pass(struct sim_usage *usage, uint64_t now_ns, uint64_t duration_ns, int process, int copying);

/* The kernels of another process ran in the time that the next call of sim_usage_pass accounts for. */
void sim_usage_join(struct sim_usage *usage, uint64_t duration_ns, int process);

/* Whether a newest window is still reported. */
bool sim_usage_is_reported(const struct sim_usage *usage, uint64_t window);

/* Clears the slot of a process that has ended, and keeps its newest window under its pid. */
void sim_usage_end(struct sim_usage *usage, uint32_t process, uint32_t pid, uint64_t space);

#endif
