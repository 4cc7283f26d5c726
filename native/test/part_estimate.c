#include "estimate.h"
#include "others.h"
#include "tap.h"

static uint32_t seed = 12345;
static uint32_t draw(uint32_t below) {
  seed = seed * 1664525u + 1013904223u;
  return (seed >> 8) % below;
}

/* The duration of a kernel of `cost` if other containers get a time slice of 2 ms each time its own time slice ends. */
static uint64_t contended(uint64_t cost, uint32_t others) {
  uint64_t sample = cost + draw((uint32_t)(cost / 50) + 1);
  uint64_t into = draw(2000000);
  return sample + (into + cost) / 2000000 * others * 2000000ull;
}

static void check_near(uint64_t value, uint64_t truth, double part) {
  CHECK_BETWEEN((double)value / (double)truth, 1 - part, 1 + part);
}

int main(void) {
  TEST_BEGIN("costs are learned from contended samples: short ones by the lowest, long ones by what others use, all "
             "when alone");
  static const uint64_t costs[] = {5000, 20000, 200000, 1500000};
  for (unsigned c = 0; c < 4; c++) {
    struct estimate estimate = {.samples = 0};
    for (int i = 0; i < 400; i++)
      estimate_learn(&estimate, contended(costs[c], 3), OTHERS_UNKNOWN, (uint64_t)i * 10000000);
    check_near(estimate_value(&estimate, OTHERS_UNKNOWN), costs[c], 0.03);
  }

  /* In some samples of a kernel that fills a slice, other containers delay it a little; they never shorten it. */
  struct estimate full = {.samples = 0};
  for (int i = 0; i < 2000; i++)
    estimate_learn(&full, 2000000 + (draw(5) < 2 ? 0 : draw(300000)), OTHERS_UNKNOWN, (uint64_t)i * 1000000);
  check_near(estimate_value(&full, OTHERS_UNKNOWN), 2000000, 0.012);

  struct estimate twofold = {.samples = 0};
  for (int i = 0; i < 2000; i++)
    estimate_learn(&twofold, i % 2 ? 1000000 : 3000000, 0, (uint64_t)i * 1000000);
  check_near(estimate_value(&twofold, 0), 2000000, 0.1);
  check_near(estimate_value(&twofold, OTHERS_UNKNOWN), 1000000, 0.05);

  struct estimate slower = {.samples = 0};
  uint64_t now = 0;
  for (; now < ESTIMATE_EPOCH_NS; now += 10000000)
    estimate_learn(&slower, 1000000, OTHERS_UNKNOWN, now);
  for (; now < 4 * ESTIMATE_EPOCH_NS; now += 10000000)
    estimate_learn(&slower, 5000000, OTHERS_UNKNOWN, now);
  check_near(estimate_value(&slower, OTHERS_UNKNOWN), 5000000, 0.02);

  /* Every sample of a kernel of ten slices includes foreign slices, so their share of the time is subtracted. */
  static const uint32_t shares[] = {200000, 500000, 750000};
  for (unsigned s = 0; s < 3; s++) {
    struct estimate lengthy = {.samples = 0};
    for (int i = 0; i < 200; i++)
      estimate_learn(&lengthy, 20000000ull * 1000000 / (1000000 - shares[s]) + draw(500000), shares[s],
                     (uint64_t)i * 30000000);
    check_near(estimate_value(&lengthy, shares[s]), 20000000, 0.03);
    CHECK(estimate_value(&lengthy, OTHERS_UNKNOWN) >= 20000000ull * 1000000 / (1000000 - shares[s]));
  }

  /* The cost of a short kernel is estimated from its undisturbed samples, whatever other containers use. */
  struct estimate brief = {.samples = 0};
  for (int i = 0; i < 200; i++)
    estimate_learn(&brief, contended(20000, 3), 750000, (uint64_t)i * 1000000);
  check_near(estimate_value(&brief, 750000), 20000, 0.03);

  struct estimate once = {.samples = 0};
  CHECK_EQ(estimate_value(&once, OTHERS_UNKNOWN), 0);
  estimate_learn(&once, 0, OTHERS_UNKNOWN, 0);
  CHECK(estimate_value(&once, OTHERS_UNKNOWN) > 0);
  estimate_learn(&once, 40000, 0, 1);
  CHECK(estimate_value(&once, 0) > 0);
  return TEST_END;
}
