#include "estimate.h"
#include "others.h"
#include "vgpu_abi.h"

/* A sample belongs to the cluster if it exceeds the lowest sample by at most this part and at most this time. A wider
 * cluster would include samples that were interrupted for less than a time slice. */
#define CLUSTER_PART 16u
#define CLUSTER_MOST_NS 500000u
/* Interruptions only lengthen a sample. If at least this part of the cluster lies in its lowest quarter, that quarter
 * holds the uninterrupted samples. */
#define QUARTILES 4u
#define STAMP_STEP_NS 600u
#define QUARTILE_LEAST_PPM 250000u
#define QUARTILE_OVER 64
#define MEAN_OVER 16
/* Number of samples in the means without waits. */
#define OWN_OVER 64
#define SUMS_OVER 2048
/* The least time slice of GPUs. */
#define SLICE_LEAST_NS 1500000u
/* A duration varies if more samples than interruptions explain, by this part, lie far above the lowest one. The fewer
 * samples, the more of them it takes. */
#define VARIES_PPM 45000u
/* All samples of a kernel that fills a time slice may be interrupted. Its duration varies if its mean is so many times
 * its lowest samples, which is more than others can lengthen it and than the agent can correct. */
#define VARIES_TIMES 4u
/* Upper bound for the share of other processes during a launch. */
#define OTHERS_MOST_PPM 950000u

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

static bool is_long(const struct estimate *estimate) {
  return estimate->cluster_ns >= ESTIMATE_LONG_NS;
}

static bool uses_mean(const struct estimate *estimate, uint32_t others_ppm) {
  return others_ppm == 0 || (others_ppm != OTHERS_UNKNOWN && is_long(estimate));
}

/* The mean of the samples up to `end`. Restarts when the mean lies outside the range. */
static uint64_t mean_within(uint64_t mean_ns, uint64_t lowest_ns, uint64_t end, uint64_t sample_ns) {
  if (mean_ns > end || mean_ns < lowest_ns) return sample_ns <= end ? sample_ns : lowest_ns;
  return sample_ns <= end ? towards(mean_ns, sample_ns, 8) : mean_ns;
}

static void learn_cluster(struct estimate *estimate, uint64_t sample_ns) {
  uint64_t low = lowest(estimate);
  uint64_t end = cluster_end(low), quartile_end = low + (end - low) / QUARTILES;
  /* Of a short kernel, samples differ by the step of the driver's time stamps. */
  if (quartile_end < low + STAMP_STEP_NS) quartile_end = low + STAMP_STEP_NS;
  if (end < quartile_end) end = quartile_end;
  estimate->cluster_ns = mean_within(estimate->cluster_ns, low, end, sample_ns);
  estimate->quartile_ns = mean_within(estimate->quartile_ns, low, quartile_end, sample_ns);
  if (sample_ns > end) return;
  estimate->quartile_ppm =
      (uint32_t)towards(estimate->quartile_ppm, sample_ns <= quartile_end ? VGPU_PPM_WHOLE : 0, QUARTILE_OVER);
}

static uint64_t cluster_value(const struct estimate *estimate) {
  return estimate->quartile_ppm >= QUARTILE_LEAST_PPM ? estimate->quartile_ns : estimate->cluster_ns;
}

static uint64_t own_part(uint64_t sample_ns, uint32_t others_ppm) {
  /* Unknown: as much as of one other container that never waits. */
  if (others_ppm == OTHERS_UNKNOWN) return sample_ns / 2;
  uint64_t own_ppm = VGPU_PPM_WHOLE - (others_ppm < OTHERS_MOST_PPM ? others_ppm : OTHERS_MOST_PPM);
  return (uint64_t)((double)sample_ns * (double)own_ppm / VGPU_PPM_WHOLE);
}

static void learn_mean(struct estimate *estimate, uint64_t sample_ns, uint32_t others_ppm) {
  uint64_t own_ns = own_part(sample_ns, others_ppm);
  /* The first samples have equal weight, as in a plain mean. */
  if (estimate->mean_of < MEAN_OVER) estimate->mean_of++;
  estimate->mean_ns = towards(estimate->mean_ns, own_ns > 0 ? own_ns : 1, estimate->mean_of);
}

void estimate_learn(struct estimate *estimate, uint64_t sample_ns, uint32_t others_ppm, uint64_t now) {
  if (sample_ns == 0) sample_ns = 1;
  if (estimate->samples == 0) estimate->epoch_from_ns = now;
  turn_epoch(estimate, now);
  estimate->epoch_samples++;
  estimate->samples++;
  if (estimate->lowest_ns[0] == 0 || sample_ns < estimate->lowest_ns[0]) estimate->lowest_ns[0] = sample_ns;
  learn_cluster(estimate, sample_ns);
  if (uses_mean(estimate, others_ppm)) learn_mean(estimate, sample_ns, others_ppm);
}

void estimate_learn_running(struct estimate *estimate, uint64_t sample_ns, uint32_t others_ppm) {
  uint64_t low = lowest(estimate);
  if (estimate->own_of < OWN_OVER) estimate->own_of++;
  estimate->own_ns = towards(estimate->own_ns, own_part(sample_ns, others_ppm), estimate->own_of);
  estimate->beyond_ppm =
      (uint32_t)towards(estimate->beyond_ppm, sample_ns > low + low / 2 ? VGPU_PPM_WHOLE : 0, estimate->own_of);
}

void estimate_sum(struct estimate_sums *sums, const struct estimate *estimate, uint64_t sample_ns, uint32_t others_ppm,
                  uint32_t launches) {
  sums->own_ns = towards(sums->own_ns, own_part(sample_ns, others_ppm) * launches, SUMS_OVER);
  sums->cluster_ns = towards(sums->cluster_ns, cluster_value(estimate) * launches, SUMS_OVER);
}

bool estimate_is_settled(const struct estimate *estimate) {
  return estimate->own_of == OWN_OVER;
}

static bool varies(const struct estimate *estimate, const struct estimate_sums *sums) {
  uint64_t of = estimate->own_of;
  if (of == 0 || sums->own_ns <= sums->cluster_ns + sums->cluster_ns / 2) return false;
  uint64_t interrupted_ppm = lowest(estimate) * VGPU_PPM_WHOLE / SLICE_LEAST_NS;
  if (interrupted_ppm + VARIES_PPM >= VGPU_PPM_WHOLE)
    return estimate_is_settled(estimate) && estimate->own_ns / VARIES_TIMES > cluster_value(estimate);
  return estimate->beyond_ppm > interrupted_ppm + VARIES_PPM * (OWN_OVER / of) * (OWN_OVER / of);
}

uint64_t estimate_least(const struct estimate *estimate, const struct estimate_sums *sums) {
  return varies(estimate, sums) ? estimate->own_ns : 0;
}

uint64_t estimate_value(const struct estimate *estimate, uint32_t others_ppm) {
  return uses_mean(estimate, others_ppm) && estimate->mean_of > 0 ? estimate->mean_ns : cluster_value(estimate);
}
