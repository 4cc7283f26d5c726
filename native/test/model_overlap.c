#include "model_bench.h"

int main(void) {
  TEST_BEGIN("kernels of one tenant share the SMs in the order of their start, none faster than alone");
  struct bench bench = bench_open(80, 2 * MS, 0);
  uint32_t only = tenant(&bench, 0);
  uint32_t stream[4];
  for (int i = 0; i < 4; i++)
    stream[i] = channel(&bench, only, 0, 0);
  /* 40 + 30 + 30 SMs on a GPU of 80: the third kernel gets the remaining ten, a third of what it can use. */
  kernel(&bench, stream[0], 40, 300 * US, 0);
  kernel(&bench, stream[1], 30, 300 * US, 0);
  kernel(&bench, stream[2], 30, 300 * US, 0);
  for (uint32_t i = 0; i < 3; i++)
    mark(&bench, stream[i], i, 0);
  advance(&bench, 1 * MS);
  CHECK_EQ(time_of(&bench, 0), 300 * US);
  CHECK_EQ(time_of(&bench, 1), 300 * US);
  /* 100 us of its work in the first 300 us, the rest alone. */
  CHECK_EQ(time_of(&bench, 2), 500 * US);
  CHECK_EQ(bench.gpu->tenants[only].busy_ns, 500 * US);

  /* Two kernels that fill the GPU take as long in two streams as one after the other. */
  kernel(&bench, stream[0], 80, 1 * MS, 1 * MS);
  kernel(&bench, stream[1], 80, 1 * MS, 1 * MS);
  push(&bench, stream[1], SIM_RECORD, 3, 1, 1 * MS);
  advance(&bench, 10 * MS);
  CHECK_EQ(time_of(&bench, 3), 3 * MS);

  /* A kernel wider than the GPU takes longer in proportion: 160 SMs' work takes twice as long. */
  kernel(&bench, stream[3], 160, 1 * MS, 10 * MS);
  push(&bench, stream[3], SIM_RECORD, 4, 1, 10 * MS);
  advance(&bench, 20 * MS);
  CHECK_EQ(time_of(&bench, 4), 12 * MS);
  bench_close(&bench);
  return TEST_END;
}
