#include "model_bench.h"

enum { TENANTS = 3, STREAMS = 3, KERNELS = 300 };

static uint64_t state;

static uint32_t random_below(uint32_t limit) {
  state = state * 6364136223846793005ull + 1442695040888963407ull;
  return (uint32_t)(state >> 33) % limit;
}

struct outcome {
  uint64_t busy[TENANTS], done[TENANTS * STREAMS], last, window[4];
};

/* The same work with queries at random times (or, with `step` 0, only one at the end). */
static struct outcome run(uint64_t seed, uint64_t step) {
  struct outcome outcome = {0};
  struct bench bench = bench_open(80, 2 * MS, 10 * US);
  uint32_t streams[TENANTS * STREAMS], tenants[TENANTS];
  state = seed;
  for (uint32_t t = 0; t < TENANTS; t++) {
    tenants[t] = tenant(&bench, t);
    for (uint32_t s = 0; s < STREAMS; s++)
      streams[t * STREAMS + s] = channel(&bench, tenants[t], s == 0 ? SIM_CHANNEL_BLOCKING : 0, -(int32_t)s);
  }
  for (int i = 0; i < KERNELS; i++) {
    uint32_t to = streams[random_below(TENANTS * STREAMS)];
    kernel(&bench, to, 1 + random_below(100), 1 + random_below(3000000), (uint64_t)i * 500 * US);
  }
  mark(&bench, streams[0], 0, 0);
  uint64_t end = 2 * SECOND, now = 0;
  state = seed ^ 0x5555;
  while (step > 0 && now < end) {
    now += 1 + random_below((uint32_t)step);
    advance(&bench, now < end ? now : end);
  }
  advance(&bench, end);
  for (uint32_t t = 0; t < TENANTS; t++)
    outcome.busy[t] = bench.gpu->tenants[tenants[t]].busy_ns;
  for (uint32_t s = 0; s < TENANTS * STREAMS; s++)
    outcome.done[s] = done_of(&bench, streams[s]);
  outcome.last = time_of(&bench, 0);
  for (int w = 0; w < 4; w++)
    outcome.window[w] = bench.gpu->usage.busy[1 + w];
  bench_close(&bench);
  return outcome;
}

int main(void) {
  TEST_BEGIN("results do not depend on how often the model is queried");
  for (uint64_t seed = 1; seed <= 20; seed++) {
    struct outcome once = run(seed, 0), often = run(seed, 3 * MS), always = run(seed, 40 * US);
    CHECK(memcmp(&once, &often, sizeof once) == 0);
    CHECK(memcmp(&once, &always, sizeof once) == 0);
  }
  return TEST_END;
}
