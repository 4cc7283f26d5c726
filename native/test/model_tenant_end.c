#include "model_bench.h"

int main(void) {
  TEST_BEGIN("work queued by a tenant ends with it, others continue at once, and waits for its events end");
  struct bench bench = bench_open(80, 2 * MS, 0);
  uint32_t dying = tenant(&bench, 0), living = tenant(&bench, 1);
  uint32_t a = channel(&bench, dying, 0, 0), b = channel(&bench, living, 0, 0), c = channel(&bench, living, 0, 0);
  kernel(&bench, a, 80, 10 * SECOND, 0);
  mark(&bench, a, 0, 0);
  push(&bench, c, SIM_WAIT, 0, 1, 0);
  push(&bench, c, SIM_RECORD, 1, 1, 0);
  kernel(&bench, b, 80, 10 * MS, 0);
  mark(&bench, b, 2, 0);
  advance(&bench, 3 * MS);
  sim_model_close_tenant(bench.gpu, bench.events, dying);
  advance(&bench, 20 * MS);
  CHECK_EQ(time_of(&bench, 0), 3 * MS);
  CHECK_EQ(time_of(&bench, 1), 3 * MS);
  /* It had run for 1 ms of the 3 ms. */
  CHECK_EQ(time_of(&bench, 2), 12 * MS);

  /* Its channels are free again, and a stream's old tickets stay complete when the channel is reused. */
  uint32_t next = tenant(&bench, 2);
  CHECK_EQ(next, dying);
  uint32_t again = channel(&bench, next, 0, 0);
  CHECK(done_of(&bench, again) == atomic_load(&bench.gpu->channels[again].submitted));
  bench_close(&bench);
  return TEST_END;
}
