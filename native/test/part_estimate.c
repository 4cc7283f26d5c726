#include "estimate.h"
#include "others.h"
#include "tap.h"
#include <stdbool.h>

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

enum { KINDS = 6 };

/* 50 us to 3 ms, two modes, two modes of which one is rare, a mode that seldom returns at once, and two modes of which
 * the short one fills a time slice. */
static uint64_t duration(unsigned kind) {
  switch (kind) {
  case 0:
    return (50000ull << draw(6)) * (1000 + draw(1000)) / 1000;
  case 1:
    return draw(100) < 20 ? 3000000 : 60000;
  case 2:
    return draw(100) < 5 ? 3000000 : 50000;
  case 3:
    return draw(200) == 0 ? 5000 : 700000;
  case 4:
    return draw(100) < 5 ? 1600000 : 20000000;
  default:
    return draw(100) < 50 ? 1900000 : 40000000;
  }
}

/* The charge of a launch beside `others` containers, after its sample. */
static uint64_t charge_of(struct estimate *estimate, struct estimate_sums *sums, uint64_t sample_ns, uint32_t others,
                          uint64_t now) {
  uint32_t others_ppm = others * 1000000 / (others + 1);
  estimate_learn(estimate, sample_ns, others_ppm, now);
  estimate_learn_running(estimate, sample_ns, others_ppm);
  estimate_sum(sums, estimate, sample_ns, others_ppm, 1);
  uint64_t value = estimate_value(estimate, others_ppm), least = estimate_least(estimate, sums);
  return value > least ? value : least;
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

  /* Queued launches of a constant duration are charged it, whatever part of them is interrupted. */
  static const uint64_t constants[] = {5000, 60000, 700000, 1300000, 1450000, 1600000, 1900000, 3000000, 20000000};
  for (unsigned c = 0; c < 9; c++)
    for (uint32_t others = 1; others <= 3; others++) {
      struct estimate constant = {.samples = 0};
      struct estimate_sums sums = {0, 0};
      double sum = 0;
      for (int i = 0; i < 4000; i++) {
        uint64_t charge = charge_of(&constant, &sums, contended(constants[c], others), others, (uint64_t)i * 2000000);
        sum += (double)charge / (double)constants[c];
      }
      CHECK_BETWEEN(sum / 4000, 0.97, 1.03);
    }

  /* Also if three others use less of the GPU over their time than beside this kernel. */
  struct estimate underrated = {.samples = 0};
  struct estimate_sums underrated_sums = {0, 0};
  for (int i = 0; i < 4000; i++) {
    uint64_t sample = contended(1600000, 3);
    estimate_learn(&underrated, sample, 200000, (uint64_t)i * 2000000);
    estimate_learn_running(&underrated, sample, 200000);
    estimate_sum(&underrated_sums, &underrated, sample, 200000, 1);
  }
  CHECK_EQ(estimate_least(&underrated, &underrated_sums), 0);

  /* As on an H200: events around a kernel of 20 us measure 24 to 26 us, a few of them more. */
  for (uint32_t others = 1; others <= 3; others++) {
    struct estimate jittered = {.samples = 0};
    struct estimate_sums sums = {0, 0};
    double sum = 0;
    for (int i = 0; i < 20000; i++) {
      uint64_t events = 4000 + draw(2000) + (draw(10) == 0 ? draw(30000) : 0);
      uint64_t charge = charge_of(&jittered, &sums, contended(20000, others) + events, others, (uint64_t)i * 2000000);
      sum += (double)charge / 24000;
    }
    CHECK_BETWEEN(sum / 20000, 0.95, 1.1);
  }

  /* In a fixed order of kernels, always the same one may be interrupted: 20 us, 200 us and 2 ms in turn. */
  static const uint64_t order[] = {20000, 200000, 2000000};
  static const uint32_t timed_each[] = {100, 10, 1}; /* fewer, the shorter they are */
  for (uint32_t others = 1; others <= 3; others++) {
    struct estimate ordered[3] = {{.samples = 0}};
    struct estimate_sums ordered_sums = {0, 0};
    uint32_t others_ppm = others * 1000000 / (others + 1);
    double first_charge = 0;
    for (uint32_t turn = 1; turn <= 40000; turn++)
      for (unsigned k = 0; k < 3; k++) {
        if (turn % timed_each[k] != 0) continue;
        bool interrupted = draw(10) < (k == 0 ? 6 : k == 1 ? 1 : 4);
        uint64_t sample = order[k] + (interrupted ? others * 2000000ull : 0);
        estimate_learn(&ordered[k], sample, others_ppm, turn * 4000000ull);
        estimate_learn_running(&ordered[k], sample, others_ppm);
        estimate_sum(&ordered_sums, &ordered[k], sample, others_ppm, timed_each[k]);
        if (k > 0 || turn <= 4000) continue;
        uint64_t value = estimate_value(&ordered[k], others_ppm), least = estimate_least(&ordered[k], &ordered_sums);
        first_charge += (double)(value > least ? value : least) / 360;
      }
    check_near((uint64_t)first_charge, order[0], 0.1);
  }

  /* A duration that varies is charged its mean, and at least so much of it that the agent can correct the rest. */
  for (unsigned kind = 0; kind < KINDS; kind++)
    for (uint32_t others = 1; others <= 3; others++) {
      struct estimate varied = {.samples = 0};
      struct estimate_sums sums = {0, 0};
      double truth = 0, charged = 0;
      for (int i = 0; i < 20000; i++) {
        uint64_t cost = duration(kind);
        uint64_t charge = charge_of(&varied, &sums, contended(cost, others), others, (uint64_t)i * 2000000);
        if (i < 100) continue;
        truth += (double)cost;
        charged += (double)charge;
      }
      CHECK_BETWEEN(charged / truth, kind == 2 ? 0.4 : 0.85, 1.15);
    }

  /* While the share of others is not known, it counts as one other container that never waits. */
  struct estimate unknown = {.samples = 0};
  struct estimate_sums unknown_sums = {0, 0};
  double unknown_charge = 0, unknown_truth = 0;
  for (int i = 0; i < 20000; i++) {
    uint64_t cost = duration(0), sample = contended(cost, 1);
    estimate_learn(&unknown, sample, OTHERS_UNKNOWN, (uint64_t)i * 2000000);
    estimate_learn_running(&unknown, sample, OTHERS_UNKNOWN);
    estimate_sum(&unknown_sums, &unknown, sample, OTHERS_UNKNOWN, 1);
    if (i < 100) continue;
    unknown_truth += (double)cost;
    unknown_charge += (double)estimate_least(&unknown, &unknown_sums);
  }
  CHECK_BETWEEN(unknown_charge / unknown_truth, 0.85, 1.15);

  struct estimate once = {.samples = 0};
  CHECK_EQ(estimate_value(&once, OTHERS_UNKNOWN), 0);
  estimate_learn(&once, 0, OTHERS_UNKNOWN, 0);
  CHECK(estimate_value(&once, OTHERS_UNKNOWN) > 0);
  estimate_learn(&once, 40000, 0, 1);
  CHECK(estimate_value(&once, 0) > 0);
  return TEST_END;
}
