#include "sim.h"

#include <pthread.h>

enum { THREADS = 6, ROUNDS = 300 };

static _Atomic int calls;

static void count(void *nothing) {
  (void)nothing;
  __atomic_fetch_add(&calls, 1, __ATOMIC_RELAXED);
}

static uint32_t random_below(uint64_t *state, uint32_t limit) {
  *state = *state * 6364136223846793005ull + 1442695040888963407ull;
  return (uint32_t)(*state >> 33) % limit;
}

static void *play(void *number) {
  uint64_t state = (uintptr_t)number + 1;
  CUdeviceptr memory[8] = {0}, pooled;
  unsigned char byte;
  OK(cuCtxSetCurrent(sim_context));
  CUstream own = sim_stream(CU_STREAM_NON_BLOCKING);
  CUevent event = sim_event();
  for (int round = 0; round < ROUNDS; round++) {
    uint32_t at = random_below(&state, 8);
    CUstream streams[] = {own, CU_STREAM_PER_THREAD, NULL};
    CUstream stream = streams[random_below(&state, 3)];
    switch (random_below(&state, 8)) {
    case 0:
      if (memory[at] != 0) OK(cuMemFree_v2(memory[at]));
      OK(cuMemAlloc_v2(&memory[at], 1 + random_below(&state, 3 << 20)));
      OK(cuMemsetD8_v2(memory[at], (unsigned char)at, 1));
      break;
    case 1:
      if (memory[at] == 0) break;
      OK(cuMemcpyDtoH_v2(&byte, memory[at], 1));
      CHECK_EQ(byte, at);
      break;
    case 2:
      OK(cuEventRecord(event, stream));
      OK(cuStreamWaitEvent(own, event, 0));
      break;
    case 3:
      OK(cuMemAllocAsync(&pooled, 1 + random_below(&state, 1 << 20), own));
      OK(cuMemFreeAsync(pooled, own));
      break;
    case 4:
      OK(cuLaunchHostFunc(own, count, NULL));
      break;
    case 5:
      OK(cuStreamSynchronize(stream));
      break;
    default:
      sim_launch(stream, 1 + random_below(&state, 90), random_below(&state, 50));
    }
  }
  OK(cuStreamSynchronize(own));
  for (int i = 0; i < 8; i++)
    OK(cuMemFree_v2(memory[i]));
  OK(cuEventDestroy_v2(event));
  OK(cuStreamDestroy_v2(own));
  return NULL;
}

int main(void) {
  pthread_t threads[THREADS];
  TEST_BEGIN("threads use one context concurrently and leave it unchanged");
  sim_begin();
  size_t before = sim_free_bytes();
  for (uintptr_t i = 0; i < THREADS; i++)
    REQUIRE(pthread_create(&threads[i], NULL, play, (void *)i) == 0);
  for (int i = 0; i < THREADS; i++)
    REQUIRE(pthread_join(threads[i], NULL) == 0);
  OK(cuCtxSynchronize());
  CHECK(calls > 0);
  CHECK_EQ(sim_free_bytes(), before);
  sim_end();
  return TEST_END;
}
