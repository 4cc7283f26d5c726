#include "model_bench.h"

int main(void) {
  TEST_BEGIN("a tenant without a ready kernel gives the GPU up at once: short bursts get one burst per round");
  struct bench bench = bench_open(80, 2 * MS, 0);
  uint32_t greedy = tenant(&bench, 0), polite = tenant(&bench, 1);
  uint32_t a = channel(&bench, greedy, 0, 0), b = channel(&bench, polite, 0, 0);
  kernel(&bench, a, 80, 1 * SECOND, 0);
  /* Launches 20 us, waits, and launches again a little later, as a loop of launch and synchronise does. */
  uint64_t now = 0, done = 0;
  kernel(&bench, b, 80, 20 * US, 0);
  while (now < 100 * MS) {
    now += 10 * US;
    advance(&bench, now);
    if (done_of(&bench, b) == done) continue;
    done = done_of(&bench, b);
    kernel(&bench, b, 80, 20 * US, now + 5 * US);
  }
  /* One burst per time slice of the other tenant. */
  CHECK_BETWEEN(done, 48, 50);
  CHECK_EQ(bench.gpu->tenants[polite].busy_ns, done * 20 * US);
  CHECK_EQ(bench.gpu->tenants[greedy].busy_ns, 100 * MS - done * 20 * US);

  /* When the other tenant has no work, the greedy tenant loses no time. */
  sim_model_close_tenant(bench.gpu, bench.events, polite);
  uint64_t before = bench.gpu->tenants[greedy].busy_ns;
  advance(&bench, 200 * MS);
  CHECK_EQ(bench.gpu->tenants[greedy].busy_ns, before + 100 * MS);
  bench_close(&bench);
  return TEST_END;
}
