#include "model_bench.h"

int main(void) {
  TEST_BEGIN("kernels of clients of one MPS server run at the same time, those of each client on its part of the SMs");
  struct bench bench = bench_open(80, 2 * MS, 10 * US);
  const struct sim_client part = {.server = 1, .together = 1, .most_sms = 24};
  const struct sim_client alone = {.server = 2, .together = 0, .most_sms = 40};
  uint32_t a = tenant(&bench, 0), b = tenant(&bench, 1), other = tenant(&bench, 2), limited = tenant(&bench, 3);
  sim_model_join(bench.gpu, a, &part);
  sim_model_join(bench.gpu, b, &part);
  sim_model_join(bench.gpu, limited, &alone);
  uint32_t first = channel(&bench, a, 0, 0), again = channel(&bench, a, 0, 0), second = channel(&bench, b, 0, 0);

  /* Both at once: 24 SMs each, of 80 that the kernels could use. */
  kernel(&bench, first, 80, 240 * US, 0);
  kernel(&bench, second, 80, 240 * US, 0);
  mark(&bench, first, 0, 0);
  mark(&bench, second, 1, 0);
  advance(&bench, SECOND);
  CHECK_EQ(time_of(&bench, 0), 800 * US);
  CHECK_EQ(time_of(&bench, 1), 800 * US);
  CHECK_EQ(bench.gpu->usage.process[0].busy_ns, 800 * US);
  CHECK_EQ(bench.gpu->usage.process[1].busy_ns, 800 * US);
  CHECK_EQ(bench.gpu->usage.total_busy_ns, 800 * US);

  /* Two kernels of one client share its part. */
  kernel(&bench, first, 16, 100 * US, SECOND);
  kernel(&bench, again, 16, 100 * US, SECOND);
  mark(&bench, again, 2, SECOND);
  advance(&bench, 2 * SECOND);
  CHECK_EQ(time_of(&bench, 2) - SECOND, 150 * US);

  /* A program that is no client takes turns with all clients together. */
  uint32_t whole = channel(&bench, other, 0, 0);
  kernel(&bench, whole, 80, 4 * MS, 2 * SECOND);
  kernel(&bench, first, 24, 4 * MS, 2 * SECOND);
  kernel(&bench, second, 24, 4 * MS, 2 * SECOND);
  mark(&bench, first, 3, 2 * SECOND);
  mark(&bench, second, 4, 2 * SECOND);
  advance(&bench, 3 * SECOND);
  CHECK_EQ(time_of(&bench, 3), time_of(&bench, 4));
  CHECK(time_of(&bench, 3) - 2 * SECOND > 6 * MS && time_of(&bench, 3) - 2 * SECOND < 9 * MS);

  /* Without a shared context, a client has turns of its own, on its part of the SMs. */
  uint32_t own = channel(&bench, limited, 0, 0);
  kernel(&bench, own, 80, 100 * US, 3 * SECOND);
  mark(&bench, own, 5, 3 * SECOND);
  CHECK_BETWEEN(sim_model_earliest(bench.gpu, bench.events, own, 1), 3 * SECOND, 3 * SECOND + 210 * US);
  advance(&bench, 4 * SECOND);
  CHECK_BETWEEN(time_of(&bench, 5) - 3 * SECOND, 200 * US, 220 * US);

  /* A fault of one client is one of all. */
  struct sim_op fault = {
      .kind = SIM_KERNEL, .flags = SIM_FAULT, .width = 1, .work = US, .ticket = 700, .submitted_ns = 4 * SECOND};
  sim_model_push(bench.gpu, first, &fault);
  kernel(&bench, second, 24, SECOND, 4 * SECOND);
  kernel(&bench, whole, 80, MS, 4 * SECOND);
  advance(&bench, 5 * SECOND);
  CHECK_EQ(bench.gpu->tenants[a].error, 700);
  CHECK_EQ(bench.gpu->tenants[b].error, 700);
  CHECK_EQ(bench.gpu->tenants[other].error, 0);
  CHECK(!sim_model_works(bench.gpu, b) && !sim_model_works(bench.gpu, other));
  bench_close(&bench);
  return TEST_END;
}
