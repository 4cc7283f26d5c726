#include "gpu.h"
#include <signal.h>
#include <stdbool.h>
#include <sys/wait.h>

#define SHARE 30
#define SOFT 90
#define PATIENCE 3000

static volatile uint32_t *granted;

static bool is_lent(void) {
  return *granted >= SOFT * 10000;
}
static bool is_taken_back(void) {
  return *granted <= SHARE * 10000;
}

/* Launches until the library grants the expected share, for at most some seconds. */
static bool until(bool (*decided)(void), CUfunction kernel, CUstream stream) {
  for (int i = 0; i < PATIENCE && !decided(); i++)
    OK(gpu_launch(kernel, 80, stream));
  OK(cuStreamSynchronize(stream));
  return decided();
}

int main(void) {
  TEST_BEGIN(
      "without an agent, a soft limit is granted while the GPU is idle, and withdrawn when another container uses it");
  TEST_NOT_WRAPPED("it measures time");
  sandbox_make();
  sandbox_limits(gpu_uuid(), 0, SHARE, SOFT);
  pid_t other = fork();
  REQUIRE(other >= 0);
  if (other == 0) {
    raise(SIGSTOP);
    gpu_occupy();
  }
  REQUIRE(waitpid(other, NULL, WUNTRACED) == other);
  gpu_open();
  granted = &sandbox_usage()->devices[0].soft_grant_ppm;
  CUfunction kernel = gpu_kernel("busy_us_200");
  CUstream stream;
  OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  CHECK(until(is_lent, kernel, stream));
  REQUIRE(kill(other, SIGCONT) == 0);
  CHECK(until(is_taken_back, kernel, stream));
  REQUIRE(kill(other, SIGKILL) == 0 && waitpid(other, NULL, 0) == other);
  CHECK(until(is_lent, kernel, stream));
  return TEST_END;
}
