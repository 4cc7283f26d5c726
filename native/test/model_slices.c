#include "model_bench.h"

int main(void) {
  TEST_BEGIN("tenants run in turn for one time slice each, whatever their kernels' size, and switches take time");
  struct bench bench = bench_open(80, 2 * MS, 10 * US);
  uint32_t first = tenant(&bench, 0), second = tenant(&bench, 1);
  uint32_t a = channel(&bench, first, 0, 0), b = channel(&bench, second, 0, 0);
  /* One long kernel against many short ones. */
  kernel(&bench, a, 80, 100 * MS, 0);
  mark(&bench, a, 1, 0);
  for (int i = 0; i < 1000; i++)
    kernel(&bench, b, 1, 100 * US, 0);
  mark(&bench, b, 2, 0);

  advance(&bench, 1 * MS);
  CHECK_EQ(bench.gpu->tenants[first].busy_ns, 1 * MS);
  CHECK_EQ(bench.gpu->tenants[second].busy_ns, 0);
  advance(&bench, 3 * MS);
  CHECK_EQ(bench.gpu->tenants[first].busy_ns, 2 * MS);
  CHECK_EQ(bench.gpu->tenants[second].busy_ns, 990 * US);
  advance(&bench, 5 * MS);
  CHECK_EQ(bench.gpu->tenants[first].busy_ns, 2 * MS + 980 * US);

  /* 100 ms of work each. A round of two slices takes 4.02 ms, so 50 rounds end after 201 ms, minus the last switch. */
  advance(&bench, 300 * MS);
  CHECK_EQ(bench.gpu->tenants[first].busy_ns, 100 * MS);
  CHECK_EQ(bench.gpu->tenants[second].busy_ns, 100 * MS);
  CHECK_EQ(time_of(&bench, 1), 49 * 4020 * US + 2 * MS);
  CHECK_EQ(time_of(&bench, 2), 49 * 4020 * US + 4010 * US);
  CHECK_EQ(bench.gpu->switches, 99);
  bench_close(&bench);
  return TEST_END;
}
