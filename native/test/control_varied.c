#include "gpu.h"
#include <signal.h>
#include <sys/wait.h>
#include <time.h>

#define SHARE 90
#define REQUEST 40
#define WARM_UP 20
#define REQUESTS 60

static uint64_t now_ns(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (uint64_t)time.tv_sec * 1000000000ull + (uint64_t)time.tv_nsec;
}

/* From 50 us to 3 ms; small ones are as frequent as large ones on a logarithmic scale. */
static uint64_t next_us(void) {
  static uint32_t seed = 12345;
  seed = seed * 1664525u + 1013904223u;
  return (50ull << (seed >> 16) % 6) * (1000 + (seed >> 8) % 1000) / 1000;
}

/* Launches a request and waits for it. Returns its time on an idle GPU, in ns. */
static uint64_t request(CUfunction kernel, CUstream stream) {
  uint64_t sum = 0;
  for (int i = 0; i < REQUEST; i++) {
    uint64_t us = next_us();
    void *arguments[] = {&us};
    OK(cuLaunchKernel(kernel, 80, 1, 1, 128, 1, 1, 0, stream, arguments, NULL));
    sum += us * 1000;
  }
  OK(cuStreamSynchronize(stream));
  return sum;
}

int main(void) {
  TEST_BEGIN("launches of one kernel that take 50 us to 3 ms are charged their time beside another container");
  TEST_NOT_WRAPPED("it measures time");
  sandbox_make();
  struct vgpu_limits *limits = sandbox_limits(gpu_uuid(), 0, SHARE, 0);
  pid_t other = fork();
  REQUIRE(other >= 0);
  if (other == 0) gpu_occupy();
  gpu_open();
  struct vgpu_usage *usage = sandbox_usage();
  CUfunction kernel = gpu_kernel("busy_us");
  CUstream stream;
  OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  uint64_t truth = 0, charged = 0;
  for (int i = 0; i < WARM_UP + REQUESTS; i++) {
    /* As the agent tells it: the other container uses half of the GPU. */
    struct vgpu_device_live live = limits->live[limits->header.sequence & 1][0];
    live.steered_at_ns = now_ns();
    live.others_ppm = 500000;
    sandbox_publish(limits, 0, live);
    if (i == WARM_UP) {
      truth = 0;
      charged = usage->devices[0].charged_ns;
    }
    truth += request(kernel, stream);
  }
  double part = (double)(usage->devices[0].charged_ns - charged) / (double)truth;
  printf("charged %.2f of the time\n", part);
  CHECK_BETWEEN(part, 0.5, 1.6);
  REQUIRE(kill(other, SIGKILL) == 0 && waitpid(other, NULL, 0) == other);
  return TEST_END;
}
