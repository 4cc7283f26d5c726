#include "cost.h"
#include "estimate.h"
#include "fork.h"
#include "lock.h"
#include "others.h"
#include <string.h>

/* One launch of a kernel is timed per this much GPU time: rarely enough that timing costs nothing noticeable, often
 * enough to follow changes. */
#define TIME_EVERY_NS 2000000ull
#define LONGEST_INTERVAL 1024u
/* So much more often while others use the GPU and it is not known whether the duration varies. */
#define OFTEN 8u
#define MOST_DOUBTS 4u
/* Charge before anything was learned: the duration of a small kernel. */
#define FIRST_GUESS_NS 20000ull

_Static_assert(COST_SETS == 1u << 12, "cost_set takes 12 bits");

struct cost costs[COST_SETS][COST_WAYS] __attribute__((aligned(64)));
static struct estimate estimates[COST_SETS * COST_WAYS];
static struct estimate_sums sums;
static struct lock lock; /* protects everything except reads of a published cost */
static uint8_t oldest[COST_SETS];
static uint64_t typical_ns; /* moving mean over all learned launches */

static struct estimate *estimate_of(const struct cost *cost) {
  return &estimates[cost - &costs[0][0]];
}

static void start(struct cost *cost, uint64_t key) {
  memset(estimate_of(cost), 0, sizeof(struct estimate));
  cost->cost_ns = 0;
  cost->countdown = cost->interval = cost->pending = cost->disturbed = 0;
  __atomic_store_n(&cost->key, key, __ATOMIC_RELEASE);
}

struct cost *cost_make(uint64_t key) {
  struct cost *cost = cost_find(key);
  if (cost != NULL) return cost;
  size_t set = cost_set(key);
  lock_take(&lock);
  cost = cost_find(key);
  if (cost == NULL) {
    size_t way = 0;
    while (way < COST_WAYS && costs[set][way].key != 0)
      way++;
    if (way == COST_WAYS) way = oldest[set]++ % COST_WAYS;
    cost = &costs[set][way];
    start(cost, key);
  }
  lock_release(&lock);
  return cost;
}

static uint32_t interval_of(uint64_t cost_ns) {
  uint64_t interval = cost_ns == 0 ? 0 : TIME_EVERY_NS / cost_ns;
  return interval > LONGEST_INTERVAL ? LONGEST_INTERVAL : (uint32_t)interval;
}

/*
 * A first sample that may be far too long would be charged until the next sample arrives, so it is ignored a few times.
 */
static bool is_doubtful(struct cost *cost, const struct timing *timing) {
  if (!timing->disturbed || estimate_of(cost)->samples > 0) return false;
  return cost->disturbed++ < MOST_DOUBTS;
}

/* Launches until the next sample: between half the interval and one and a half intervals. Equal distances could always
 * hit the same kernel of a repeating pattern. Multiples of the golden ratio spread them evenly. */
static uint32_t next_countdown(uint32_t interval) {
  static uint32_t turn;
  turn += 0x9e3779b9u;
  return interval / 2 + (uint32_t)((uint64_t)turn * (interval + 1) >> 32);
}

static uint64_t value_of(const struct estimate *estimate, uint32_t others_ppm) {
  uint64_t value = estimate_value(estimate, others_ppm);
  uint64_t least = others_ppm == 0 ? 0 : estimate_least(estimate, &sums);
  return value > least ? value : least;
}

void cost_learn(struct cost *cost, uint64_t key, const struct timing *timing, uint64_t now) {
  lock_take(&lock);
  if (cost->key == key && !is_doubtful(cost, timing)) {
    struct estimate *estimate = estimate_of(cost);
    uint32_t others_ppm = timing->others_ppm;
    estimate_learn(estimate, timing->sample_ns, timing->disturbed ? OTHERS_UNKNOWN : others_ppm, now);
    /* Beside others, a launch on an idle stream may have waited for its first time slice. */
    bool informs = !timing->disturbed && (others_ppm == 0 || timing->queued);
    if (informs) estimate_learn_running(estimate, timing->sample_ns, others_ppm);
    if (!timing->disturbed) estimate_sum(&sums, estimate, timing->sample_ns, others_ppm, cost->interval + 1);
    uint64_t value = value_of(estimate, others_ppm);
    /* The first launches of a kernel are all timed, because a single sample may be wrong. */
    cost->interval = estimate->samples < 4 ? 0 : interval_of(value);
    if (informs && others_ppm != 0 && !estimate_is_settled(estimate)) cost->interval /= OFTEN;
    if (cost->countdown / 2 > cost->interval) cost->countdown = next_countdown(cost->interval);
    typical_ns = typical_ns == 0 ? value : typical_ns - typical_ns / 16 + value / 16;
    __atomic_store_n(&cost->cost_ns, value, __ATOMIC_RELAXED);
  }
  lock_release(&lock);
}

void cost_timing(struct cost *cost, int by) {
  lock_take(&lock);
  if (by > 0) {
    cost->pending++;
    cost->countdown = next_countdown(cost->interval);
  } else if (cost->pending > 0) {
    cost->pending--;
  }
  lock_release(&lock);
}

uint64_t cost_guess(void) {
  uint64_t typical = __atomic_load_n(&typical_ns, __ATOMIC_RELAXED);
  return typical == 0 ? FIRST_GUESS_NS : typical;
}

bool cost_is_known(const struct cost *cost) {
  return __atomic_load_n(&cost->cost_ns, __ATOMIC_RELAXED) != 0 &&
         __atomic_load_n(&estimate_of(cost)->samples, __ATOMIC_RELAXED) != 0;
}

void cost_forget(uint64_t key) {
  struct cost *cost = cost_find(key);
  if (cost == NULL) return;
  lock_take(&lock);
  if (cost->key == key) start(cost, key);
  lock_release(&lock);
}

void cost_refresh(uint64_t key) {
  struct cost *cost = cost_find(key);
  if (cost == NULL) return;
  lock_take(&lock);
  if (cost->key == key) {
    memset(estimate_of(cost), 0, sizeof(struct estimate));
    cost->interval = 0;
    cost->countdown = 0;
  }
  lock_release(&lock);
}

static void reset(void) {
  lock.taken = 0;
}
AFTER_FORK(reset)
