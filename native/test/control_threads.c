#include "gpu.h"
#include <pthread.h>

#define THREADS 8
#define ROUNDS 3000
#define LIMIT (32 * MIB)

static uint64_t granted;
static int overshoots, failures;

static void *work(void *argument) {
  uint32_t seed = (uint32_t)(uintptr_t)argument;
  CUdeviceptr pointers[4] = {0};
  uint64_t sizes[4];
  if (cuCtxSetCurrent(gpu_context) != CUDA_SUCCESS) __atomic_fetch_add(&failures, 1, __ATOMIC_RELAXED);
  for (int round = 0; round < ROUNDS; round++) {
    seed = seed * 1664525u + 1013904223u;
    uint32_t i = seed >> 30;
    if (pointers[i] != 0) {
      __atomic_fetch_sub(&granted, sizes[i], __ATOMIC_SEQ_CST);
      if (cuMemFree_v2(pointers[i]) != CUDA_SUCCESS) __atomic_fetch_add(&failures, 1, __ATOMIC_RELAXED);
      pointers[i] = 0;
      continue;
    }
    sizes[i] = (seed >> 8) % (4 * MIB) + 1;
    CUresult result = cuMemAlloc_v2(&pointers[i], sizes[i]);
    if (result != CUDA_SUCCESS) {
      pointers[i] = 0;
      if (result != CUDA_ERROR_OUT_OF_MEMORY) __atomic_fetch_add(&failures, 1, __ATOMIC_RELAXED);
      continue;
    }
    if (__atomic_add_fetch(&granted, sizes[i], __ATOMIC_SEQ_CST) > LIMIT)
      __atomic_fetch_add(&overshoots, 1, __ATOMIC_RELAXED);
  }
  for (int i = 0; i < 4; i++) {
    if (pointers[i] == 0) continue;
    __atomic_fetch_sub(&granted, sizes[i], __ATOMIC_SEQ_CST);
    cuMemFree_v2(pointers[i]);
  }
  return NULL;
}

int main(void) {
  TEST_BEGIN("threads that race for memory never exceed the limit");
  sandbox_make();
  sandbox_limits(gpu_uuid(), LIMIT, 100, 0);
  gpu_open();
  pthread_t threads[THREADS];
  for (uintptr_t i = 0; i < THREADS; i++)
    REQUIRE(pthread_create(&threads[i], NULL, work, (void *)(i * 7919 + 3)) == 0);
  for (int i = 0; i < THREADS; i++)
    pthread_join(threads[i], NULL);
  CHECK_EQ(overshoots, 0);
  CHECK_EQ(failures, 0);
  CHECK_EQ(gpu_held(), 0);
  return TEST_END;
}
