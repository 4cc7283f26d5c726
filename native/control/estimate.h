/*
 * What a launch costs, learned from timed ones. Pure arithmetic.
 *
 * A launch timed while others use the GPU contains their time slices, so without further knowledge only the cluster of
 * samples next to the lowest is believed: of a short kernel some samples fall between two slices. A long one never
 * does, but of its samples others have their part of the time, so where that part is known the mean of the rest is
 * believed. When nobody else uses the GPU the mean of all samples is: that is right also for kernels whose time depends
 * on their data.
 */
#ifndef VGPU_ESTIMATE_H
#define VGPU_ESTIMATE_H

#include <stdint.h>

/* The lowest sample is forgotten after two of these, so that a kernel that got slower is noticed. */
#define ESTIMATE_EPOCH_NS 15000000000ull
#define ESTIMATE_EPOCH_SAMPLES 16u
/* Longer than GPUs let a process run while others wait: what takes this long has been interrupted. */
#define ESTIMATE_LONG_NS 4000000u

struct estimate {
  uint64_t lowest_ns[2]; /* of the current epoch and the one before; 0: none */
  uint64_t epoch_from_ns;
  uint32_t epoch_samples;
  uint32_t samples;
  uint64_t cluster_ns; /* mean of the samples next to the lowest */
  uint64_t core_ns;    /* mean of the lowest of these */
  uint32_t core_ppm;   /* their part of the cluster */
  uint64_t mean_ns;    /* of those whose other part is known, without it */
  uint32_t mean_of;
};

/* `others_ppm`: what others used of the GPU meanwhile, 0: nobody did, OTHERS_UNKNOWN. */
void estimate_learn(struct estimate *estimate, uint64_t sample_ns, uint32_t others_ppm, uint64_t now);

/* What the launch costs; `others_ppm` says what others do now. 0 while nothing was learned. */
uint64_t estimate_value(const struct estimate *estimate, uint32_t others_ppm);

#endif
