#include "cost.h"
#include "others.h"
#include "tap.h"

#define COST_NS 20200u /* timed every 100 launches */
#define TIMED 500u
/* Programs launch many kernels between two waits; each position of the burst must be timed equally often. */
#define BURST 25u

static void learn(struct cost *cost) {
  const struct timing timing = {.sample_ns = COST_NS, .others_ppm = OTHERS_UNKNOWN, .disturbed = false};
  cost_timing(cost, -1);
  cost_learn(cost, 1, &timing, 1);
}

int main(void) {
  TEST_BEGIN("timed launches of a kernel are not periodic: every position of a burst is timed");
  struct cost *cost = cost_make(1);
  for (int i = 0; i < 4; i++) {
    CHECK_EQ(cost->countdown, 0); /* the first launches are all timed */
    cost_timing(cost, 1);
    learn(cost);
  }

  unsigned turns[BURST] = {0}, launches = 0;
  for (unsigned timed = 0; timed < TIMED; launches++) {
    if (cost->countdown-- != 0) continue;
    turns[launches % BURST]++;
    cost_timing(cost, 1);
    learn(cost);
    timed++;
  }
  /* Once per 2 ms of its GPU time, on average. */
  CHECK_BETWEEN((double)launches / TIMED, 94, 106);
  for (unsigned i = 0; i < BURST; i++)
    CHECK_BETWEEN(turns[i], TIMED / BURST / 2, TIMED / BURST * 2);
  return TEST_END;
}
