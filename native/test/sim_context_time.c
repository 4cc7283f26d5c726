#include "sim.h"
#include "sim_nvml.h"

#include <time.h>

enum { CONTEXT_MS = 80 };

static double now_ms(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

int main(void) {
  TEST_BEGIN(
      "creating a context takes the time of the node's description, and retaining the primary one takes it once");
  CUcontext context;
  sim_describe("{\"gpus\": [{}], \"simulation\": {\"contextMs\": 80}}");
  OK(cuInit(0));
  double begun = now_ms();
  OK(cuDevicePrimaryCtxRetain(&context, 0));
  double retained = now_ms();
  CHECK(retained - begun >= CONTEXT_MS);
  /* Compared with the first call, not with a fixed time: a busy machine slows both. */
  for (int i = 0; i < 20; i++)
    OK(cuDevicePrimaryCtxRetain(&context, 0));
  CHECK(now_ms() - retained < 20 * (retained - begun));
  begun = now_ms();
  OK(cuCtxCreate_v2(&context, 0, 0));
  CHECK(now_ms() - begun >= CONTEXT_MS);
  return TEST_END;
}
