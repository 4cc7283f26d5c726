#include "gpu.h"
#include <sys/wait.h>

#define PROCESSES 16
#ifndef ROUNDS
#define ROUNDS 500
#endif
#define LIMIT (100 * MIB)
#define POINTERS 8

static uint32_t draw(uint32_t *seed) {
  *seed = *seed * 1664525u + 1013904223u;
  return *seed >> 8;
}

/* At any time, the memory granted to all processes together does not exceed the limit. */
static int race(uint32_t seed, uint64_t *granted, uint64_t *successes) {
  CUdeviceptr pointers[POINTERS] = {0};
  uint64_t sizes[POINTERS];
  CUcontext context;
  if (cuInit(0) != CUDA_SUCCESS || cuCtxCreate_v2(&context, 0, 0) != CUDA_SUCCESS) return 3;
  for (int round = 0; round < ROUNDS; round++) {
    uint32_t i = draw(&seed) % POINTERS;
    if (pointers[i] != 0) {
      __atomic_fetch_sub(granted, sizes[i], __ATOMIC_SEQ_CST);
      if (cuMemFree_v2(pointers[i]) != CUDA_SUCCESS) return 4;
      pointers[i] = 0;
      continue;
    }
    sizes[i] = draw(&seed) % (16 * MIB) + 1;
    CUresult result = cuMemAlloc_v2(&pointers[i], sizes[i]);
    if (result == CUDA_ERROR_OUT_OF_MEMORY) {
      pointers[i] = 0;
      continue;
    }
    if (result != CUDA_SUCCESS) return 5;
    __atomic_fetch_add(successes, 1, __ATOMIC_RELAXED);
    if (__atomic_add_fetch(granted, sizes[i], __ATOMIC_SEQ_CST) > LIMIT) return 6;
  }
  for (uint32_t i = 0; i < POINTERS; i++) {
    if (pointers[i] == 0) continue;
    __atomic_fetch_sub(granted, sizes[i], __ATOMIC_SEQ_CST);
    if (cuMemFree_v2(pointers[i]) != CUDA_SUCCESS) return 4;
  }
  return 0;
}

int main(void) {
  TEST_BEGIN("16 processes that allocate many times each at the limit never exceed it by a byte");
  sandbox_make();
  sandbox_limits(gpu_uuid(), LIMIT, 100, 0);
  uint64_t *shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  REQUIRE(shared != MAP_FAILED);
  for (uint32_t i = 0; i < PROCESSES; i++) {
    pid_t pid = fork();
    REQUIRE(pid >= 0);
    if (pid == 0) _exit(race(i * 7919 + 1, &shared[0], &shared[1]));
  }
  int status;
  while (wait(&status) > 0)
    CHECK_EQ(WIFEXITED(status) ? WEXITSTATUS(status) : -1, 0);
  CHECK_EQ(shared[0], 0);
  CHECK_EQ(gpu_held(), 0);
  CHECK(sandbox_usage()->devices[0].peak_bytes <= LIMIT);
  CHECK(shared[1] > PROCESSES * ROUNDS / 20);
  return TEST_END;
}
