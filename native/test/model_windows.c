#include "model_bench.h"

/* Percent of a window that has ended, or 255. */
static unsigned int busy(struct bench *bench, uint64_t window) {
  const struct sim_usage *usage = &bench->gpu->usage;
  return window < usage->window ? usage->busy[window % SIM_WINDOWS] : 255;
}

static unsigned int process(struct bench *bench, uint32_t slot) {
  const struct sim_process_usage *usage = &bench->gpu->usage.process[slot];
  return usage->percent[usage->window % SIM_PROCESS_WINDOWS];
}

int main(void) {
  TEST_BEGIN("utilisation comes in windows of 1/6 s, after they have ended, in whole percents rounded down");
  struct bench bench = bench_open(80, 2 * MS, 0);
  uint32_t first = tenant(&bench, 7), second = tenant(&bench, 8);
  uint32_t a = channel(&bench, first, 0, 0), b = channel(&bench, second, 0, 0);

  /* A kernel on one SM counts like one on all: 50 of 166.67 ms are 29.99 percent. */
  kernel(&bench, a, 1, 50 * MS, 0);
  advance(&bench, 166 * MS);
  CHECK_EQ(busy(&bench, 1), 255);
  advance(&bench, 167 * MS);
  CHECK_EQ(busy(&bench, 1), 29);
  CHECK_EQ(process(&bench, 7), 29);

  /* Concurrent kernels count once. Two tenants share the window. */
  advance(&bench, 2 * (uint64_t)SIM_WINDOW_NS);
  CHECK_EQ(busy(&bench, 2), 0);
  uint64_t third = 2 * (uint64_t)SIM_WINDOW_NS;
  kernel(&bench, a, 80, 400 * MS, third);
  kernel(&bench, b, 80, 400 * MS, third);
  advance(&bench, third + SIM_WINDOW_NS);
  CHECK_EQ(busy(&bench, 3), 100);
  CHECK_BETWEEN(process(&bench, 7), 49, 51);
  CHECK_BETWEEN(process(&bench, 8), 49, 51);
  CHECK_BETWEEN(process(&bench, 7) + process(&bench, 8), 98, 100);

  /* After an hour without work the windows are empty and hold no old values. */
  advance(&bench, 3600 * SECOND);
  CHECK_EQ(busy(&bench, bench.gpu->usage.window - 1), 0);
  CHECK_EQ(bench.gpu->usage.total_busy_ns, 850 * MS);
  CHECK_EQ(bench.gpu->usage.process[7].busy_ns, 450 * MS);
  bench_close(&bench);
  return TEST_END;
}
