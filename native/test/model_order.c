#include "model_bench.h"

int main(void) {
  TEST_BEGIN("events, joins and the legacy default stream order work between streams as in CUDA");
  struct bench bench = bench_open(80, 2 * MS, 0);
  uint32_t only = tenant(&bench, 0), legacy = bench.gpu->tenants[only].legacy;
  uint32_t blocking = channel(&bench, only, SIM_CHANNEL_BLOCKING, 0), apart = channel(&bench, only, 0, 0);

  /* A wait for an event blocks one stream only. */
  kernel(&bench, blocking, 1, 100 * US, 0);
  push(&bench, blocking, SIM_RECORD, 0, 1, 0);
  push(&bench, apart, SIM_WAIT, 0, 1, 0);
  kernel(&bench, apart, 1, 50 * US, 0);
  push(&bench, apart, SIM_RECORD, 1, 1, 0);
  advance(&bench, 1 * MS);
  CHECK_EQ(time_of(&bench, 0), 100 * US);
  CHECK_EQ(time_of(&bench, 1), 150 * US);

  /* Work in the legacy stream waits for earlier work in blocking streams, and later work there waits for it. */
  kernel(&bench, blocking, 1, 100 * US, 1 * MS);
  kernel(&bench, legacy, 1, 100 * US, 1 * MS);
  push(&bench, legacy, SIM_RECORD, 2, 1, 1 * MS);
  kernel(&bench, blocking, 1, 100 * US, 1 * MS);
  push(&bench, blocking, SIM_RECORD, 3, 1, 1 * MS);
  kernel(&bench, apart, 1, 100 * US, 1 * MS);
  push(&bench, apart, SIM_RECORD, 4, 1, 1 * MS);
  advance(&bench, 2 * MS);
  CHECK_EQ(time_of(&bench, 2), 1200 * US);
  CHECK_EQ(time_of(&bench, 3), 1300 * US);
  CHECK_EQ(time_of(&bench, 4), 1100 * US);

  /* A join waits for a number of operations of another stream. */
  uint64_t ticket = kernel(&bench, blocking, 1, 300 * US, 2 * MS);
  push(&bench, apart, SIM_JOIN, blocking, ticket, 2 * MS);
  push(&bench, apart, SIM_RECORD, 5, 1, 2 * MS);
  advance(&bench, 2100 * US);
  CHECK_EQ(sim_model_earliest(bench.gpu, bench.events, apart, atomic_load(&bench.gpu->channels[apart].submitted)),
           2300 * US);
  advance(&bench, 3 * MS);
  CHECK_EQ(time_of(&bench, 5), 2300 * US);
  bench_close(&bench);
  return TEST_END;
}
