#include "gpu.h"
#include <signal.h>
#include <sys/wait.h>
#include <time.h>

#define KERNEL_US 200000ull
#define SHARE 5

static uint64_t now_ns(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (uint64_t)time.tv_sec * 1000000000ull + (uint64_t)time.tv_nsec;
}

static void launch(CUfunction kernel, CUstream stream) {
  uint64_t us = KERNEL_US;
  void *arguments[] = {&us};
  OK(cuLaunchKernel(kernel, 80, 1, 1, 128, 1, 1, 0, stream, arguments, NULL));
}

/* Learns the cost of the kernel with nearly the full share, then launches it once more with a small share. */
static void owe(int told, int tells) {
  char word;
  gpu_open();
  CUfunction kernel = gpu_kernel("busy_us");
  CUstream stream;
  OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  for (int i = 0; i < 3; i++) {
    launch(kernel, stream);
    OK(cuStreamSynchronize(stream));
  }
  REQUIRE(write(tells, "l", 1) == 1 && read(told, &word, 1) == 1);
  launch(kernel, stream);
  REQUIRE(write(tells, "o", 1) == 1);
  for (;;)
    pause();
}

int main(void) {
  TEST_BEGIN("what a killed process did not use of its last launch is not charged to the others of its container");
  int to_child[2], to_parent[2];
  char word;
  sandbox_make();
  struct vgpu_limits *limits = sandbox_limits(gpu_uuid(), 0, 90, 0);
  struct vgpu_usage *usage = sandbox_usage();
  REQUIRE(pipe(to_child) == 0 && pipe(to_parent) == 0);
  pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) owe(to_child[0], to_parent[1]);
  /* Registers before the other process is killed, because registration reclaims dead slots in any case. */
  gpu_open();
  CUfunction kernel = gpu_kernel("busy_us_1");
  REQUIRE(read(to_parent[0], &word, 1) == 1);
  struct vgpu_device_live live = limits->live[0][0];
  live.share = SHARE;
  sandbox_publish(limits, 0, live);
  uint64_t launched_after = now_ns();
  REQUIRE(write(to_child[1], "g", 1) == 1 && read(to_parent[0], &word, 1) == 1);
  /* 200 ms at this share are four seconds. */
  uint64_t owed_us = 0;
  for (uint32_t i = 0; i < VGPU_MAX_PROCESSES; i++)
    owed_us += usage->ledger[0][i].launched & (VGPU_LAUNCHED_UNKNOWN - 1);
  CHECK(owed_us >= 3500000);
  REQUIRE(kill(child, SIGKILL) == 0);
  siginfo_t ended;
  REQUIRE(waitid(P_PID, (id_t)child, &ended, WEXITED | WNOWAIT) == 0);
  /* It used at most this and what passes until the next launch finds it dead. */
  uint64_t used_ns = now_ns() - launched_after;

  uint64_t throttled = usage->devices[0].throttled_ns;
  OK(gpu_launch(kernel, 1, NULL));
  OK(cuCtxSynchronize());
  CHECK(usage->devices[0].throttled_ns - throttled < owed_us * 1000 / 2 + used_ns * 100 / SHARE);
  REQUIRE(waitpid(child, NULL, 0) == child);
  return TEST_END;
}
