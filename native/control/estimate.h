/*
 * Estimates the cost of a launch from timed launches. Pure arithmetic.
 *
 * A launch that was timed while other containers use the GPU includes their time slices. Three estimates cover this:
 * - If no other container uses the GPU, the mean of all samples. It is also right for kernels whose duration depends on
 *   their data.
 * - If the share of other containers is known and the kernel is longer than a time slice, the mean of the samples with
 *   that share subtracted.
 * - Otherwise the cluster of samples next to the lowest: some samples of a short kernel fall between two foreign time
 *   slices. If the duration varies by itself, at least the mean with their share subtracted; half of it, if the
 *   share is not known.
 */
#ifndef VGPU_ESTIMATE_H
#define VGPU_ESTIMATE_H

#include <stdbool.h>
#include <stdint.h>

/* The lowest sample expires after two epochs, so that a kernel that became slower is noticed. */
#define ESTIMATE_EPOCH_NS 15000000000ull
#define ESTIMATE_EPOCH_SAMPLES 16u
/* Longer than the time slice of GPUs: a kernel of this duration is always interrupted while other processes wait. */
#define ESTIMATE_LONG_NS 4000000u

struct estimate {
  uint64_t lowest_ns[2]; /* of the current epoch and of the previous one; 0: none */
  uint64_t epoch_from_ns;
  uint32_t epoch_samples;
  uint32_t samples;
  uint64_t cluster_ns;   /* mean of the samples in the cluster next to the lowest */
  uint64_t quartile_ns;  /* mean of the samples in the lowest quarter of the cluster */
  uint32_t quartile_ppm; /* part of the cluster's samples that lie in that quarter */
  uint64_t mean_ns;      /* mean of the samples with a known foreign share, with that share subtracted */
  uint32_t mean_of;
  uint64_t own_ns;     /* the same mean over more samples, all without waits for a first time slice */
  uint32_t beyond_ppm; /* part of these samples that exceed the lowest one by half */
  uint32_t own_of;
};

/* Over the samples of all launches of a process. */
struct estimate_sums {
  uint64_t own_ns;     /* what the means of their samples say */
  uint64_t cluster_ns; /* what the lowest of their samples say */
};

/* `others_ppm`: what other processes used of the GPU during the sample; 0: nothing, OTHERS_UNKNOWN: not known. */
void estimate_learn(struct estimate *estimate, uint64_t sample_ns, uint32_t others_ppm, uint64_t now);

/* The same sample, if it cannot include the wait for a first time slice: no other container uses the GPU, or the launch
 * was queued behind earlier work of its stream. */
void estimate_learn_running(struct estimate *estimate, uint64_t sample_ns, uint32_t others_ppm);

/* Whether there are enough such samples. */
bool estimate_is_settled(const struct estimate *estimate);

/* Adds a sample, which stands for this many launches. */
void estimate_sum(struct estimate_sums *sums, const struct estimate *estimate, uint64_t sample_ns, uint32_t others_ppm,
                  uint32_t launches);

/* The estimated cost of the launch, given what other processes use now. 0 while there is no sample. */
uint64_t estimate_value(const struct estimate *estimate, uint32_t others_ppm);

/*
 * The least cost of the launch beside other containers: the mean of these samples, if its duration varies; 0 if not. A
 * kernel of constant duration is interrupted in as many samples as its own time slice ends in, and kernels that follow
 * each other in a fixed order may share these unevenly. So both must be beyond that: the samples of this kernel, and
 * the sum over all of them.
 */
uint64_t estimate_least(const struct estimate *estimate, const struct estimate_sums *sums);

#endif
