/*
 * How busy a GPU and its processes are, in the windows in which drivers sample it. Pure: times come from outside.
 *
 * A window is 1/6 s. What happened in it can be read only after it has ended, in whole percents; that is what NVML's
 * callers see of a real GPU.
 */
#ifndef SIM_USAGE_H
#define SIM_USAGE_H

#include <stdint.h>

enum {
  SIM_WINDOW_NS = 166666667,
  SIM_WINDOWS = 128,        /* windows of the GPU that are remembered */
  SIM_PROCESS_WINDOWS = 16, /* windows of each process that are remembered */
  SIM_MAX_PROCESSES = 256,
};

struct sim_process_usage {
  uint64_t busy_ns;   /* since the process came, kernels running */
  uint64_t window_ns; /* of it, in the window that runs */
  uint64_t window;    /* number of the newest remembered window; 0: none */
  uint8_t percent[SIM_PROCESS_WINDOWS];
};

struct sim_usage {
  uint64_t origin_ns; /* window n ends at origin + n windows */
  uint64_t window;    /* number of the window that runs; the first is 1 */
  uint64_t busy_ns;   /* of it, with a kernel on the GPU */
  uint64_t copy_ns;   /* of it, with a copy under way */
  uint64_t total_busy_ns;
  uint8_t busy[SIM_WINDOWS]; /* percent of window n, at n modulo SIM_WINDOWS */
  uint8_t copy[SIM_WINDOWS];
  struct sim_process_usage process[SIM_MAX_PROCESSES];
};

void sim_usage_begin(struct sim_usage *usage, uint64_t now_ns);

/* When the running window ends: account never for a time that crosses it. */
uint64_t sim_usage_window_end(const struct sim_usage *usage);

/* `duration_ns` have passed up to `now_ns`. `process` had kernels on the GPU, or none had (-1). */
void sim_usage_pass(struct sim_usage *usage, uint64_t now_ns, uint64_t duration_ns, int process, int copying);

/* A slot gets a new process: what the old one did is forgotten. */
void sim_usage_forget(struct sim_usage *usage, uint32_t process);

#endif
