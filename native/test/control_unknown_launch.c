#include "gpu.h"
#include <signal.h>
#include <sys/wait.h>
#include <time.h>

#define KERNEL_US 500000ull

static uint64_t now_ns(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (uint64_t)time.tv_sec * 1000000000ull + (uint64_t)time.tv_nsec;
}

static void launch_unknown(int tells) {
  uint64_t us = KERNEL_US;
  void *arguments[] = {&us};
  gpu_open();
  CUfunction kernel = gpu_kernel("busy_us");
  OK(cuLaunchKernel(kernel, 80, 1, 1, 128, 1, 1, 0, NULL, arguments, NULL));
  uint64_t at = now_ns();
  REQUIRE(write(tells, &at, sizeof at) == sizeof at);
  OK(cuCtxSynchronize());
  for (;;)
    pause();
}

int main(void) {
  TEST_BEGIN("while a launch of unknown cost runs, the other processes of its container launch nothing");
  int pipes[2];
  uint64_t launched_at;
  sandbox_make();
  sandbox_limits(gpu_uuid(), 0, 90, 0);
  REQUIRE(pipe(pipes) == 0);
  pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) launch_unknown(pipes[1]);
  gpu_open();
  CUfunction kernel = gpu_kernel("busy_us_20");
  REQUIRE(read(pipes[0], &launched_at, sizeof launched_at) == sizeof launched_at);
  OK(gpu_launch(kernel, 1, NULL));
  CHECK(now_ns() - launched_at > KERNEL_US * 1000 * 9 / 10);
  REQUIRE(kill(child, SIGKILL) == 0 && waitpid(child, NULL, 0) == child);
  return TEST_END;
}
