#include "model_bench.h"

int main(void) {
  TEST_BEGIN("streams of higher priority run first, and a cooperative kernel waits for all its SMs");
  struct bench bench = bench_open(80, 2 * MS, 0);
  uint32_t only = tenant(&bench, 0);
  uint32_t low = channel(&bench, only, 0, 0), high = channel(&bench, only, 0, -5), third = channel(&bench, only, 0, 0);
  kernel(&bench, low, 80, 1 * MS, 0);
  mark(&bench, low, 0, 0);
  kernel(&bench, high, 80, 1 * MS, 500 * US);
  mark(&bench, high, 1, 500 * US);
  advance(&bench, 5 * MS);
  CHECK_EQ(time_of(&bench, 1), 1500 * US);
  CHECK_EQ(time_of(&bench, 0), 2 * MS);

  /* 60 SMs are occupied for 1 ms: the cooperative kernel of 40 cannot start on the remaining 20. */
  kernel(&bench, low, 60, 1 * MS, 10 * MS);
  struct sim_op gang = {.kind = SIM_KERNEL, .flags = SIM_GANG, .width = 40, .work = 40 * MS, .submitted_ns = 10 * MS};
  sim_model_push(bench.gpu, third, &gang);
  mark(&bench, third, 2, 10 * MS);
  advance(&bench, 20 * MS);
  CHECK_EQ(time_of(&bench, 2), 12 * MS);
  bench_close(&bench);
  return TEST_END;
}
