#include "gpu.h"
#include <signal.h>
#include <sys/wait.h>

/* Learns the cost of the kernel with nearly the full share, then launches it once more with a tiny share. */
static void owe(int told, int tells) {
  char word;
  gpu_open();
  CUfunction kernel = gpu_kernel("busy_ms_20");
  CUstream stream;
  OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  for (int i = 0; i < 6; i++) {
    OK(gpu_launch(kernel, 80, stream));
    OK(cuStreamSynchronize(stream));
  }
  REQUIRE(write(tells, "l", 1) == 1 && read(told, &word, 1) == 1);
  OK(gpu_launch(kernel, 80, stream));
  REQUIRE(write(tells, "o", 1) == 1);
  for (;;)
    pause();
}

int main(void) {
  TEST_BEGIN("the debt of a killed process for its last launch is not charged to the others of its container");
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
  live.share = 1;
  sandbox_publish(limits, 0, live);
  REQUIRE(write(to_child[1], "g", 1) == 1 && read(to_parent[0], &word, 1) == 1);
  /* 20 ms at a share of one hundredth are two seconds. */
  uint64_t owed = 0;
  for (uint32_t i = 0; i < VGPU_MAX_PROCESSES; i++)
    owed += usage->ledger[0][i].last_charge_ns;
  CHECK(owed >= 1500000000ull);
  REQUIRE(kill(child, SIGKILL) == 0);

  uint64_t throttled = usage->devices[0].throttled_ns;
  OK(gpu_launch(kernel, 1, NULL));
  OK(cuCtxSynchronize());
  CHECK(usage->devices[0].throttled_ns - throttled < owed / 2);
  REQUIRE(waitpid(child, NULL, 0) == child);
  return TEST_END;
}
