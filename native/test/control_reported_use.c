#include "gpu.h"
#include <signal.h>
#include <stdbool.h>
#include <sys/wait.h>

#define KERNEL_NS 20000000ull
#define ROUND_LAUNCHES 8
#define PATIENCE 40 /* maximum number of rounds, because a busy machine delays the expected result */
#define ROUNDS_ALONE 12

static struct vgpu_usage *usage;

/* The charge of a launch, in kernels: the mean of one round. */
static double charge(CUfunction kernel) {
  uint64_t before = __atomic_load_n(&usage->devices[0].charged_ns, __ATOMIC_RELAXED);
  for (int i = 0; i < ROUND_LAUNCHES; i++)
    OK(gpu_launch(kernel, 80, NULL));
  return (double)(__atomic_load_n(&usage->devices[0].charged_ns, __ATOMIC_RELAXED) - before) / ROUND_LAUNCHES /
         KERNEL_NS;
}

static bool is_charged_for_others(double kernels) {
  return kernels > 1.25;
}
static bool is_corrected(double kernels) {
  return kernels < 1.2;
}
static bool is_whole(double kernels) {
  return kernels > 0.95;
}

/* Launches until the charge of one round is as expected, for at most PATIENCE rounds. */
static bool until(bool (*expected)(double), CUfunction kernel) {
  for (int i = 0; i < PATIENCE; i++)
    if (expected(charge(kernel))) return true;
  return false;
}

int main(void) {
  TEST_BEGIN("without an agent, time slices of other containers within a long kernel are given back, and no more");
  TEST_NOT_WRAPPED("it measures time");
  sandbox_make();
  sandbox_limits(gpu_uuid(), 0, 45, 0);
  pid_t other = fork();
  REQUIRE(other >= 0);
  if (other == 0) gpu_occupy();
  gpu_open();
  usage = sandbox_usage();
  CUfunction kernel = gpu_kernel("busy_ms_20");
  /* The kernel takes twice as long while the other program uses the GPU. At first it is charged for the whole time. */
  CHECK(until(is_charged_for_others, kernel));
  CHECK(until(is_corrected, kernel));
  /* When the other program has ended, kernels are charged in full again. */
  REQUIRE(kill(other, SIGKILL) == 0 && waitpid(other, NULL, 0) == other);
  CHECK(until(is_whole, kernel));
  /* If the program waits for a CPU, one round may be refunded what the next round is charged. */
  double rounds = 0;
  for (int i = 0; i < ROUNDS_ALONE; i++)
    rounds += charge(kernel);
  CHECK(is_whole(rounds / ROUNDS_ALONE));
  return TEST_END;
}
