#include "sim.h"

static int inherit(void *nothing) {
  CUdeviceptr memory;
  (void)nothing;
  CHECK_EQ(cuMemAlloc_v2(&memory, 4096), CUDA_ERROR_NOT_INITIALIZED);
  CHECK_EQ(cuInit(0), CUDA_ERROR_NOT_INITIALIZED);
  CHECK_EQ(cuCtxSynchronize(), CUDA_ERROR_NOT_INITIALIZED);
  return TEST_END;
}

static int fresh(void *nothing) {
  (void)nothing;
  sim_begin();
  sim_launch(NULL, 1, 10);
  OK(cuCtxSynchronize());
  sim_end();
  return TEST_END;
}

int main(void) {
  CUdeviceptr memory;
  TEST_BEGIN("after cuInit a child made by fork cannot use CUDA and affects nothing; before cuInit it is a "
             "process like any");
  CHECK_EQ(sim_wait(sim_process(fresh, NULL)), 0);
  sim_begin();
  OK(cuMemAlloc_v2(&memory, 64 << 20));
  size_t before = sim_free_bytes();
  CHECK_EQ(sim_wait(sim_process(inherit, NULL)), 0);
  CHECK_EQ(sim_tool("status"), 0);
  CHECK_EQ(sim_free_bytes(), before);
  OK(cuMemFree_v2(memory));
  sim_launch(NULL, 1, 10);
  OK(cuCtxSynchronize());
  sim_end();
  return TEST_END;
}
