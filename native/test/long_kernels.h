/* The charge of long kernels beside another program, in kernels. */
#ifndef LONG_KERNELS_H
#define LONG_KERNELS_H

#include "gpu.h"

#define LONG_KERNEL "busy_ms_20"
#define LONG_KERNEL_NS 20000000ull
#define ROUND_LAUNCHES 8
#define PATIENCE 40 /* maximum number of rounds, because a busy machine delays the expected result */
/* One round is charged little when the other program waits for a CPU. */
#define ROUNDS_CORRECTED 5

/* The charge of a launch, in kernels: the mean of some rounds. */
static double long_charge(struct vgpu_usage *usage, CUfunction kernel, int rounds) {
  int launches = rounds * ROUND_LAUNCHES;
  uint64_t before = __atomic_load_n(&usage->devices[0].charged_ns, __ATOMIC_RELAXED);
  for (int i = 0; i < launches; i++)
    OK(gpu_launch(kernel, 80, NULL));
  uint64_t charged_ns = __atomic_load_n(&usage->devices[0].charged_ns, __ATOMIC_RELAXED) - before;
  return (double)charged_ns / launches / LONG_KERNEL_NS;
}

static bool is_charged_for_others(double kernels) {
  return kernels > 1.25;
}
static bool is_corrected(double kernels) {
  return kernels < 1.2;
}

/* Launches until the charge of so many rounds is as expected, for at most PATIENCE rounds. */
static bool long_until(bool (*expected)(double), struct vgpu_usage *usage, CUfunction kernel, int rounds) {
  for (int i = 0; i < PATIENCE; i += rounds)
    if (expected(long_charge(usage, kernel, rounds))) return true;
  return false;
}

#endif
