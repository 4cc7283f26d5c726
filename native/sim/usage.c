#include "usage.h"

#include <string.h>

void sim_usage_begin(struct sim_usage *usage, uint64_t now_ns) {
  memset(usage, 0, sizeof *usage);
  usage->origin_ns = now_ns;
  usage->window = 1;
}

uint64_t sim_usage_window_end(const struct sim_usage *usage) {
  return usage->origin_ns + usage->window * SIM_WINDOW_NS;
}

static uint8_t percent(uint64_t part_ns) {
  uint64_t whole = part_ns * 100 / SIM_WINDOW_NS;
  return whole > 100 ? 100 : (uint8_t)whole;
}

static void end_window(struct sim_usage *usage) {
  uint64_t window = usage->window;
  usage->busy[window % SIM_WINDOWS] = percent(usage->busy_ns);
  usage->copy[window % SIM_WINDOWS] = percent(usage->copy_ns);
  if (usage->busy_ns > 0) {
    for (uint32_t i = 0; i < SIM_MAX_PROCESSES; i++) {
      struct sim_process_usage *process = &usage->process[i];
      if (process->window_ns == 0) continue;
      /* Idle windows are not written when they pass, so skipped entries are cleared here. */
      uint64_t missed = process->window + 1;
      if (missed + SIM_PROCESS_WINDOWS <= window) missed = window - SIM_PROCESS_WINDOWS + 1;
      for (; missed < window; missed++)
        process->percent[missed % SIM_PROCESS_WINDOWS] = 0;
      process->percent[window % SIM_PROCESS_WINDOWS] = percent(process->window_ns);
      process->window = window;
      process->window_ns = 0;
    }
  }
  usage->busy_ns = 0;
  usage->copy_ns = 0;
  usage->window = window + 1;
}

void sim_usage_join(struct sim_usage *usage, uint64_t duration_ns, int process) {
  usage->process[process].busy_ns += duration_ns;
  usage->process[process].window_ns += duration_ns;
}

void sim_usage_pass(struct sim_usage *usage, uint64_t now_ns, uint64_t duration_ns, int process, int copying) {
  if (process >= 0) {
    usage->busy_ns += duration_ns;
    usage->total_busy_ns += duration_ns;
    sim_usage_join(usage, duration_ns, process);
  }
  if (copying) usage->copy_ns += duration_ns;
  if (now_ns >= sim_usage_window_end(usage)) end_window(usage);
}

bool sim_usage_is_reported(const struct sim_usage *usage, uint64_t window) {
  return window != 0 && window + SIM_REPORTED_WINDOWS >= usage->window;
}

void sim_usage_end(struct sim_usage *usage, uint32_t process, uint32_t pid, uint64_t space) {
  const struct sim_process_usage *own = &usage->process[process];
  if (own->window != 0)
    usage->ended[usage->ended_count++ % SIM_MAX_ENDED] = (struct sim_ended_usage){
        .window = own->window, .space = space, .pid = pid, .percent = own->percent[own->window % SIM_PROCESS_WINDOWS]};
  memset(&usage->process[process], 0, sizeof usage->process[process]);
}
