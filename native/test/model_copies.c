#include "model_bench.h"

static void copy(struct bench *bench, uint32_t to, enum sim_engine engine, uint64_t duration_ns) {
  struct sim_op op = {.kind = SIM_COPY, .engine = engine, .work = duration_ns, .submitted_ns = 0};
  sim_model_push(bench->gpu, to, &op);
}

int main(void) {
  TEST_BEGIN(
      "copies run beside kernels, both directions at once, each direction first come first served for all tenants");
  struct bench bench = bench_open(80, 2 * MS, 0);
  uint32_t first = tenant(&bench, 0), second = tenant(&bench, 1);
  uint32_t compute = channel(&bench, first, 0, 0), in = channel(&bench, first, 0, 0),
           out = channel(&bench, first, 0, 0);
  uint32_t other = channel(&bench, second, 0, 0);
  kernel(&bench, compute, 80, 1 * MS, 0);
  copy(&bench, in, SIM_TO_DEVICE, 300 * US);
  copy(&bench, out, SIM_TO_HOST, 400 * US);
  copy(&bench, other, SIM_TO_DEVICE, 100 * US);
  mark(&bench, compute, 0, 0);
  mark(&bench, in, 1, 0);
  mark(&bench, out, 2, 0);
  mark(&bench, other, 3, 0);
  advance(&bench, 2 * MS);
  CHECK_EQ(time_of(&bench, 0), 1 * MS);
  CHECK_EQ(time_of(&bench, 1), 300 * US);
  CHECK_EQ(time_of(&bench, 2), 400 * US);
  CHECK_EQ(time_of(&bench, 3), 400 * US);
  CHECK_EQ(bench.gpu->tenants[second].busy_ns, 0);
  bench_close(&bench);
  return TEST_END;
}
