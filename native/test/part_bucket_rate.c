#include "share_law.h"
#include "tap.h"

/* A launch loop on a clock of its own: how much GPU time gets through in `wall_ns`, woken `late_ns` too late each time.
 */
static double share_of(uint64_t cost_ns, uint32_t share_ppm, uint64_t wall_ns, uint64_t late_ns) {
  uint64_t now = 1000000000, level = now, start = now, used = 0;
  while (now < start + wall_ns) {
    uint64_t wait = law_wait_ns(level, now);
    if (wait > 0) {
      now += wait + late_ns;
      continue;
    }
    level = law_charge(level, now, law_wall_ns(cost_ns, share_ppm, 0));
    used += cost_ns;
    now += 500; /* a launch takes the host some time */
  }
  return 100.0 * (double)used / (double)wall_ns;
}

int main(void) {
  TEST_BEGIN("a share is kept whatever a kernel takes, and however late sleeps end");
  static const uint64_t costs[] = {5000, 20000, 200000, 2000000, 20000000};
  static const uint64_t late[] = {0, 100000, 3000000, 20000000};
  for (uint32_t share = 10; share <= 90; share += 10)
    for (unsigned c = 0; c < sizeof costs / sizeof costs[0]; c++)
      for (unsigned l = 0; l < sizeof late / sizeof late[0]; l++) {
        double got = share_of(costs[c], share * 10000, 10000000000ull, late[l]);
        /* One launch of 20 ms is 0.2 points of ten seconds. */
        CHECK_BETWEEN(got, share - 0.25, share + 0.25);
      }
  return TEST_END;
}
