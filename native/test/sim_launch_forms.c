#include "sim.h"

static CUstream stream;

/* The duration of the last launch in microseconds, since the previous call. */
static double taken(void) {
  static CUevent before;
  CUevent now = sim_mark(stream);
  OK(cuEventSynchronize(now));
  double us = before == NULL ? 0 : sim_elapsed_us(before, now);
  if (before != NULL) OK(cuEventDestroy_v2(before));
  before = now;
  return us;
}

int main(void) {
  TEST_BEGIN("every form of launch takes the kernel's duration: Ex, cooperative, parameter buffers, legacy calls");
  sim_jump();
  sim_begin();
  stream = sim_stream(CU_STREAM_NON_BLOCKING);
  CUfunction busy = sim_function("busy_us");
  uint64_t us = 200;
  void *parameters[] = {&us};
  taken();

  CUlaunchAttribute attribute = {.id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE, .value = {.cooperative = 1}};
  CUlaunchConfig config = {.gridDimX = 8,
                           .gridDimY = 1,
                           .gridDimZ = 1,
                           .blockDimX = 64,
                           .blockDimY = 1,
                           .blockDimZ = 1,
                           .hStream = stream,
                           .attrs = &attribute,
                           .numAttrs = 1};
  OK(cuLaunchKernelEx(&config, busy, parameters, NULL));
  CHECK_BETWEEN(taken(), 199, 201);
  OK(cuLaunchKernelEx_ptsz(&config, busy, parameters, NULL));
  CHECK_BETWEEN(taken(), 199, 201);
  OK(cuLaunchCooperativeKernel(busy, 80, 1, 1, 1024, 1, 1, 0, stream, parameters));
  CHECK_BETWEEN(taken(), 199, 201);
  CHECK_EQ(cuLaunchCooperativeKernel(busy, 161, 1, 1, 1024, 1, 1, 0, stream, parameters),
           CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE);

  size_t size = sizeof us;
  void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &us, CU_LAUNCH_PARAM_BUFFER_SIZE, &size, CU_LAUNCH_PARAM_END};
  OK(cuLaunchKernel(busy, 1, 1, 1, 1, 1, 1, 0, stream, NULL, extra));
  CHECK_BETWEEN(taken(), 199, 201);
  CHECK_EQ(cuLaunchKernel(busy, 1, 1, 1, 1, 1, 1, 0, stream, parameters, extra), CUDA_ERROR_INVALID_VALUE);
  CHECK_EQ(cuLaunchKernel(busy, 1, 1, 1, 1, 1, 1, 0, stream, NULL, NULL), CUDA_ERROR_INVALID_VALUE);

  OK(cuFuncSetBlockShape(busy, 16, 16, 1));
  OK(cuParamSetSize(busy, 8));
  OK(cuParamSetv(busy, 0, &us, sizeof us));
  OK(cuLaunchGridAsync(busy, 4, 4, stream));
  CHECK_BETWEEN(taken(), 199, 201);

  /* A kernel without a duration in its name: 10 us per block, and 240 blocks are three waves. */
  OK(cuLaunchKernel(sim_function("plain"), 240, 1, 1, 1, 1, 1, 0, stream, NULL, NULL));
  CHECK_BETWEEN(taken(), 29, 31);

  CUDA_LAUNCH_PARAMS many = {.function = busy,
                             .gridDimX = 1,
                             .gridDimY = 1,
                             .gridDimZ = 1,
                             .blockDimX = 1,
                             .blockDimY = 1,
                             .blockDimZ = 1,
                             .hStream = stream,
                             .kernelParams = parameters};
  OK(cuLaunchCooperativeKernelMultiDevice(&many, 1, 0));
  CHECK_BETWEEN(taken(), 199, 201);

  CHECK_EQ(cuLaunchKernel(busy, 0, 1, 1, 1, 1, 1, 0, stream, parameters, NULL), CUDA_ERROR_INVALID_VALUE);
  CHECK_EQ(cuLaunchKernel(busy, 1, 1, 1, 1025, 1, 1, 0, stream, parameters, NULL), CUDA_ERROR_INVALID_VALUE);
  CHECK_EQ(cuLaunchKernel(busy, 1, 65536, 1, 1, 1, 1, 0, stream, parameters, NULL), CUDA_ERROR_INVALID_VALUE);
  CHECK_EQ(cuLaunchKernel(NULL, 1, 1, 1, 1, 1, 1, 0, stream, parameters, NULL), CUDA_ERROR_INVALID_HANDLE);
  sim_end();
  return TEST_END;
}
