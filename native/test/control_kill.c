#include "gpu.h"
#include <signal.h>
#include <sys/wait.h>
#include <time.h>

#define LIMIT (64 * MIB)
#define ROUNDS 40

static void churn(uint32_t seed) {
  CUcontext context;
  CUdeviceptr pointers[4] = {0};
  CUstream stream;
  if (cuInit(0) != CUDA_SUCCESS || cuCtxCreate_v2(&context, 0, 0) != CUDA_SUCCESS) _exit(1);
  if (cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING) != CUDA_SUCCESS) _exit(1);
  for (;;) {
    seed = seed * 1664525u + 1013904223u;
    uint32_t i = seed >> 30;
    if (pointers[i] != 0) {
      if (seed & 1024)
        cuMemFree_v2(pointers[i]);
      else
        cuMemFreeAsync(pointers[i], stream);
      pointers[i] = 0;
    } else if (seed & 2048) {
      if (cuMemAlloc_v2(&pointers[i], (seed >> 12) % (8 * MIB) + 1) != CUDA_SUCCESS) pointers[i] = 0;
    } else if (cuMemAllocAsync(&pointers[i], (seed >> 12) % (8 * MIB) + 1, stream) != CUDA_SUCCESS) {
      pointers[i] = 0;
    }
  }
}

static void sleep_ns(long ns) {
  struct timespec time = {.tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000};
  nanosleep(&time, NULL);
}

int main(void) {
  TEST_BEGIN("memory of a process killed at any point is available to others within a second");
  sandbox_make();
  sandbox_limits(gpu_uuid(), LIMIT, 100, 0);
  uint32_t seed = 4711;
  gpu_open();
  for (int round = 0; round < ROUNDS; round++) {
    pid_t pids[3];
    for (int i = 0; i < 3; i++) {
      pids[i] = fork();
      REQUIRE(pids[i] >= 0);
      seed = seed * 1664525u + 1013904223u;
      if (pids[i] == 0) churn(seed);
    }
    seed = seed * 1664525u + 1013904223u;
    sleep_ns(2000000 + seed % 12000000);
    for (int i = 0; i < 3; i++)
      kill(pids[i], SIGKILL);
    /* The children are zombies, because their parent has not waited for them. All of their memory must be reclaimable.
     */
    CUdeviceptr all;
    CUresult result = CUDA_ERROR_OUT_OF_MEMORY;
    for (int tries = 0; tries < 100 && result != CUDA_SUCCESS; tries++) {
      result = cuMemAlloc_v2(&all, LIMIT);
      if (result != CUDA_SUCCESS) sleep_ns(10000000);
    }
    CHECK_EQ(result, CUDA_SUCCESS);
    if (result == CUDA_SUCCESS) OK(cuMemFree_v2(all));
    for (int i = 0; i < 3; i++)
      waitpid(pids[i], NULL, 0);
    if (tap_failures > 0) break;
  }
  CHECK_EQ(gpu_held(), 0);
  return TEST_END;
}
