#include "settlement.h"
#include "tap.h"
#include <stdbool.h>

#define MS 1000000ull
#define WINDOW_NS (1000 * MS / 6)

static uint32_t seed = 12345;
static uint32_t draw(uint32_t below) {
  seed = seed * 1664525u + 1013904223u;
  return (seed >> 8) % below;
}

/* A program that launches kernels of `kernel_ns` one after the other, each `pause_ns` after the end of the last one. */
struct program {
  uint64_t kernel_ns;
  uint64_t charge_ns; /* the wall time of a kernel */
  uint64_t pause_ns;
};

struct account {
  uint64_t charged_ns, used_ns, given_back_ns;
};

/* The GPU time that its kernels used until `now`, and the sum of the charges of the kernels that had ended by then. */
static struct account account_at(const struct program *program, uint64_t now) {
  uint64_t period = program->charge_ns + program->pause_ns, into = now % period, kernels = now / period;
  bool ended = into >= program->charge_ns;
  uint64_t ran = ended ? program->kernel_ns : into * program->kernel_ns / program->charge_ns;
  return (struct account){
      .charged_ns = (kernels + ended) * program->charge_ns,
      .used_ns = kernels * program->kernel_ns + ran,
  };
}

/* Queries reports like a throttled program: about every 100 ms, with a delay of up to `late_ms` caused by the host. */
static struct account run(struct settlement *settlement, const struct program *program, uint64_t from, uint64_t until,
                          uint32_t late_ms) {
  struct account first = account_at(program, from), last = account_at(program, until);
  last.charged_ns -= first.charged_ns;
  last.used_ns -= first.used_ns;
  for (uint64_t now = from; now < until; now += (100 + draw(late_ms + 1)) * MS) {
    settlement_mark(settlement, now, (int64_t)account_at(program, now).charged_ns);
    uint64_t end = now / WINDOW_NS * WINDOW_NS;
    uint64_t used = account_at(program, end).used_ns - account_at(program, end - WINDOW_NS).used_ns;
    if (used > 0) settlement_report(settlement, end, (uint32_t)(used * 100 / WINDOW_NS));
    last.given_back_ns += settlement_take(settlement, program->charge_ns, 10000 * MS);
  }
  return last;
}

int main(void) {
  TEST_BEGIN("what long kernels were charged beyond the driver's reports is given back, and nothing else");

  /* Other containers use a fifth, half and three quarters of a kernel's duration. */
  static const uint64_t walls[] = {25, 40, 80};
  for (unsigned w = 0; w < sizeof walls / sizeof walls[0]; w++) {
    struct settlement settlement = {.marked = 0};
    const struct program program = {20 * MS, walls[w] * MS, 5 * MS};
    run(&settlement, &program, 1000 * MS, 5000 * MS, 0);
    struct account account = run(&settlement, &program, 5000 * MS, 65000 * MS, 0);
    double wrong = (double)(account.charged_ns - account.used_ns);
    CHECK_BETWEEN((double)account.given_back_ns / wrong, 0.95, 1.03);
  }

  /* Correct charges: kernels of all durations, shares from a tenth to nine tenths, late wake-ups. */
  static const uint64_t kernels[] = {4, 20, 100, 300};
  static const uint32_t late[] = {0, 20, 150};
  for (unsigned k = 0; k < sizeof kernels / sizeof kernels[0]; k++)
    for (uint64_t share = 10; share <= 90; share += 20)
      for (unsigned l = 0; l < sizeof late / sizeof late[0]; l++) {
        struct settlement settlement = {.marked = 0};
        const struct program program = {kernels[k] * MS, kernels[k] * MS, kernels[k] * MS * (100 - share) / share};
        struct account account = run(&settlement, &program, 1000 * MS, 61000 * MS, late[l]);
        /* Reports in whole percent leave an uncertainty of half a percent of the minute. */
        CHECK_BETWEEN((double)account.given_back_ns / MS, 0, 300);
      }

  /* The other containers end: the excess is refunded once. */
  struct settlement settlement = {.marked = 0};
  const struct program contended = {20 * MS, 40 * MS, 10 * MS}, alone = {20 * MS, 20 * MS, 5 * MS};
  run(&settlement, &contended, 1000 * MS, 11000 * MS, 0);
  CHECK_BETWEEN((double)run(&settlement, &alone, 11000 * MS, 71000 * MS, 0).given_back_ns / MS, 0, 300);

  /* After a missed window nothing is refunded. */
  settlement.excess_ns = 300 * (int64_t)MS;
  settlement_report(&settlement, 80000 * MS, 0);
  CHECK_EQ(settlement_take(&settlement, 0, 10000 * MS), 0);

  /* A call takes at most the requested amount, and at most the upper bound. */
  settlement.excess_ns = 300 * (int64_t)MS;
  CHECK_EQ(settlement_take(&settlement, 20 * MS, 30 * MS), 30 * MS);
  CHECK_EQ(settlement_take(&settlement, 20 * MS, 1000 * MS), SETTLEMENT_MOST_NS - 30 * MS);
  return TEST_END;
}
