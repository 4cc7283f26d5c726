#include "estimate.h"

/* A sample belongs to the cluster when it is not longer than the lowest by a quarter, nor by what a foreign time slice
 * takes. */
#define CLUSTER_PART 4u
#define CLUSTER_MOST_NS 500000u
#define MEAN_OVER 16

static uint64_t lowest(const struct estimate *estimate) {
  uint64_t now = estimate->lowest_ns[0];
  uint64_t before = estimate->lowest_ns[1];
  if (before == 0) return now;
  return now == 0 || before < now ? before : now;
}

static uint64_t cluster_end(uint64_t lowest_ns) {
  uint64_t part = lowest_ns / CLUSTER_PART;
  return lowest_ns + (part < CLUSTER_MOST_NS ? part : CLUSTER_MOST_NS);
}

static uint64_t towards(uint64_t mean, uint64_t sample, int64_t over) {
  return (uint64_t)((int64_t)mean + ((int64_t)sample - (int64_t)mean) / over);
}

static void turn_epoch(struct estimate *estimate, uint64_t now) {
  if (now - estimate->epoch_from_ns < ESTIMATE_EPOCH_NS || estimate->epoch_samples < ESTIMATE_EPOCH_SAMPLES) return;
  estimate->lowest_ns[1] = estimate->lowest_ns[0];
  estimate->lowest_ns[0] = 0;
  estimate->epoch_from_ns = now;
  estimate->epoch_samples = 0;
}

void estimate_learn(struct estimate *estimate, uint64_t sample_ns, uint64_t now) {
  if (sample_ns == 0) sample_ns = 1;
  if (estimate->samples == 0) estimate->epoch_from_ns = now;
  turn_epoch(estimate, now);
  estimate->epoch_samples++;
  estimate->samples++;
  if (estimate->lowest_ns[0] == 0 || sample_ns < estimate->lowest_ns[0]) estimate->lowest_ns[0] = sample_ns;
  uint64_t end = cluster_end(lowest(estimate));
  /* The first samples weigh as much as in a plain mean. */
  int64_t over = estimate->samples < MEAN_OVER ? (int64_t)estimate->samples : MEAN_OVER;
  estimate->mean_ns = towards(estimate->mean_ns, sample_ns, over);
  if (estimate->cluster_ns == 0 || estimate->cluster_ns > end || estimate->cluster_ns < lowest(estimate))
    estimate->cluster_ns = sample_ns <= end ? sample_ns : lowest(estimate);
  else if (sample_ns <= end)
    estimate->cluster_ns = towards(estimate->cluster_ns, sample_ns, 8);
}

uint64_t estimate_value(const struct estimate *estimate, bool alone) {
  return alone ? estimate->mean_ns : estimate->cluster_ns;
}
