/*
 * What a launch costs, learned from timed ones. Pure arithmetic.
 *
 * A launch timed while others use the GPU contains their time slices, so without further knowledge only the cluster of
 * samples next to the lowest is believed. When the container is known to be alone the mean of all samples is: that is
 * right also for kernels whose time depends on their data.
 */
#ifndef VGPU_ESTIMATE_H
#define VGPU_ESTIMATE_H

#include <stdbool.h>
#include <stdint.h>

/* The lowest sample is forgotten after two of these, so that a kernel that got slower is noticed. */
#define ESTIMATE_EPOCH_NS 15000000000ull
#define ESTIMATE_EPOCH_SAMPLES 16u

struct estimate {
  uint64_t lowest_ns[2]; /* of the current epoch and the one before; 0: none */
  uint64_t epoch_from_ns;
  uint32_t epoch_samples;
  uint32_t samples;
  uint64_t cluster_ns; /* mean of the samples next to the lowest */
  uint64_t mean_ns;    /* of all */
};

void estimate_learn(struct estimate *estimate, uint64_t sample_ns, uint64_t now);

/* 0 while nothing was learned. */
uint64_t estimate_value(const struct estimate *estimate, bool alone);

#endif
