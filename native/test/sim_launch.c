#include "sim.h"

/* Events have a resolution of 512 ns. */
enum { STEP_US = 1 };

int main(void) {
  CUstream stream;
  CUevent begin, middle, end;
  TEST_BEGIN("kernels of a stream run one after the other, for the duration in name or parameter");
  sim_jump();
  sim_begin();
  OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  OK(cuEventCreate(&begin, CU_EVENT_DEFAULT));
  OK(cuEventCreate(&middle, CU_EVENT_DEFAULT));
  OK(cuEventCreate(&end, CU_EVENT_DEFAULT));

  OK(cuEventRecord(begin, stream));
  sim_launch(stream, 80, 300);
  OK(cuLaunchKernel(sim_function("busy_us_100"), 1, 1, 1, 32, 1, 1, 0, stream, NULL, NULL));
  OK(cuEventRecord(middle, stream));
  /* 200 blocks on 80 SMs: three waves. */
  uint64_t us = 50;
  void *parameters[] = {&us};
  OK(cuLaunchKernel(sim_function("block_us"), 200, 1, 1, 128, 1, 1, 0, stream, parameters, NULL));
  OK(cuEventRecord(end, stream));
  CHECK_EQ(cuStreamQuery(stream), CUDA_ERROR_NOT_READY);
  CHECK_EQ(cuEventQuery(end), CUDA_ERROR_NOT_READY);
  OK(cuStreamSynchronize(stream));
  CHECK_EQ(cuStreamQuery(stream), CUDA_SUCCESS);
  CHECK_BETWEEN(sim_elapsed_us(begin, middle), 400 - STEP_US, 400 + STEP_US);
  CHECK_BETWEEN(sim_elapsed_us(middle, end), 150 - STEP_US, 150 + STEP_US);

  OK(cuEventDestroy_v2(begin));
  OK(cuEventDestroy_v2(middle));
  OK(cuEventDestroy_v2(end));
  OK(cuStreamDestroy_v2(stream));
  sim_end();
  return TEST_END;
}
