#include "share_law.h"
#include "tap.h"

/* A launch loop with a simulated clock: the GPU time that it gets in `wall_ns`, with every wake-up `late_ns` late. Each
 * launch takes some host time; `sync`: the time of a launch that waits for the GPU each time. */
static double share_of(uint64_t cost_ns, uint32_t share_ppm, uint64_t wall_ns, uint64_t late_ns, uint64_t sync_ns) {
  uint64_t now = 1000000000, level = now, start = now, used = 0, held_up = 0;
  while (now < start + wall_ns) {
    uint64_t wait = law_wait_ns(level, now);
    if (wait > 0) {
      now += wait + late_ns;
      held_up = late_ns;
      continue;
    }
    level = law_charge(level, now, law_wall_ns(cost_ns, share_ppm, 0), held_up);
    held_up = law_held_up_ns(level, now, held_up);
    used += cost_ns;
    now += sync_ns == 0 ? 500 : sync_ns;
  }
  return 100.0 * (double)used / (double)wall_ns;
}

int main(void) {
  TEST_BEGIN("a share is kept for every kernel duration and every delay of wake-ups");
  static const uint64_t costs[] = {5000, 20000, 200000, 2000000, 20000000};
  static const uint64_t late[] = {0,        100000,    3000000,
                                  20000000, 120000000, LAW_CREDIT_NS + LAW_HELD_UP_MOST_NS - 1000000};
  for (uint32_t share = 10; share <= 90; share += 10)
    for (unsigned c = 0; c < sizeof costs / sizeof costs[0]; c++)
      for (unsigned l = 0; l < sizeof late / sizeof late[0]; l++) {
        double got = share_of(costs[c], share * 10000, 10000000000ull, late[l], 0);
        /* One launch of 20 ms is 0.2 percent of ten seconds, and 200 ms of credit at the end are 2 percent. */
        double most = 0.25 + (double)late[l] / 1e8 * share / 100;
        CHECK_BETWEEN(got, share - most, share + most);
      }
  /* A program that waits for each launch catches up as far as the GPU allows. */
  CHECK_BETWEEN(share_of(200000, 500000, 10000000000ull, 120000000, 201000), 49, 51);
  /* Delays beyond the bound are lost, as is the share that an idle program did not use. */
  CHECK(share_of(200000, 500000, 10000000000ull, 600000000, 0) < 40);
  return TEST_END;
}
