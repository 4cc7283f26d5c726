#include "long_kernels.h"
#include <signal.h>
#include <sys/wait.h>

#define ROUNDS_ALONE 12
#define BRIEF_LAUNCHES 3000 /* 600 ms: several windows in which the driver measures */

static bool is_whole(double kernels) {
  return kernels > 0.95;
}

/* A program of another container that has ended: the driver still reports its use. */
static void run_briefly(void) {
  pid_t brief = fork();
  REQUIRE(brief >= 0);
  if (brief == 0) gpu_occupy_for(BRIEF_LAUNCHES);
  int status;
  REQUIRE(waitpid(brief, &status, 0) == brief && WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

int main(void) {
  TEST_BEGIN("without an agent, time slices of other containers within a long kernel are given back, and no more");
  TEST_NOT_WRAPPED("it measures time");
  sandbox_make();
  sandbox_limits(gpu_uuid(), 0, 45, 0);
  run_briefly();
  pid_t other = fork();
  REQUIRE(other >= 0);
  if (other == 0) gpu_occupy();
  gpu_open();
  struct vgpu_usage *usage = sandbox_usage();
  CUfunction kernel = gpu_kernel(LONG_KERNEL);
  /* The kernel takes twice as long while the other program uses the GPU. At first it is charged for the whole time. */
  CHECK(long_until(is_charged_for_others, usage, kernel, 1));
  CHECK(long_until(is_corrected, usage, kernel, ROUNDS_CORRECTED));
  /* When the other program has ended, kernels are charged in full again. */
  REQUIRE(kill(other, SIGKILL) == 0 && waitpid(other, NULL, 0) == other);
  CHECK(long_until(is_whole, usage, kernel, 1));
  /* If the program waits for a CPU, one round may be refunded what the next round is charged. */
  CHECK(is_whole(long_charge(usage, kernel, ROUNDS_ALONE)));
  return TEST_END;
}
