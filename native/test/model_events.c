#include "model_bench.h"

int main(void) {
  TEST_BEGIN(
      "an event is recorded while its tenant has the SMs, so a short kernel beside a long one measures as alone");
  struct bench bench = bench_open(80, 2 * MS, 195 * US);
  uint32_t a = channel(&bench, tenant(&bench, 0), 0, 0), b = channel(&bench, tenant(&bench, 1), 0, 0);
  kernel(&bench, a, 80, 20 * MS, 0);
  struct sim_op event = {.kind = SIM_RECORD, .ticket = 1, .work = 1400, .submitted_ns = 500 * US};
  event.event = 1;
  sim_model_push(bench.gpu, b, &event);
  kernel(&bench, b, 80, 200 * US, 500 * US);
  event.event = 2;
  sim_model_push(bench.gpu, b, &event);
  advance(&bench, 10 * MS);
  CHECK_EQ(time_of(&bench, 1), 2195 * US + 1400);
  CHECK_EQ(time_of(&bench, 2) - time_of(&bench, 1), 200 * US + 1400);
  bench_close(&bench);

  /* A GPU with half of the load runs faster by half of the boost. */
  const struct sim_pace pace = {.slice_ns = 2 * MS, .boost_percent = 40};
  bench = bench_open(80, 2 * MS, 0);
  sim_model_begin(bench.gpu, 0, 80, &pace, 0);
  a = channel(&bench, tenant(&bench, 0), 0, 0);
  kernel(&bench, a, 80, SIM_WINDOW_NS / 2, 0);
  kernel(&bench, a, 80, 12 * MS, SIM_WINDOW_NS + MS);
  mark(&bench, a, 1, 0);
  advance(&bench, SECOND);
  CHECK_BETWEEN(time_of(&bench, 1), SIM_WINDOW_NS + MS + 9900 * US, SIM_WINDOW_NS + MS + 10100 * US);
  bench_close(&bench);
  return TEST_END;
}
