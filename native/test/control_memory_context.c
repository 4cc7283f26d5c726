#include "gpu.h"

int main(void) {
  TEST_BEGIN("the end of a context gives back what was allocated in it");
  sandbox_make();
  sandbox_limits(gpu_uuid(), 64 * MIB, 100, 0);
  gpu_open();
  CUdeviceptr mine, theirs;
  CUcontext other, primary;
  CUarray array;
  CUDA_ARRAY_DESCRIPTOR flat = {1024, 1024, CU_AD_FORMAT_FLOAT, 1};
  OK(cuMemAlloc_v2(&mine, 8 * MIB));
  OK(cuCtxCreate_v2(&other, 0, 0));
  OK(cuMemAlloc_v2(&theirs, 16 * MIB));
  OK(cuArrayCreate_v2(&array, &flat));
  CHECK_EQ(gpu_held(), 28 * MIB);
  OK(cuCtxDestroy_v2(other));
  CHECK_EQ(gpu_held(), 8 * MIB);

  OK(cuDevicePrimaryCtxRetain(&primary, 0));
  OK(cuDevicePrimaryCtxRetain(&primary, 0));
  OK(cuCtxPushCurrent_v2(primary));
  OK(cuMemAlloc_v2(&theirs, 16 * MIB));
  CHECK_EQ(gpu_held(), 24 * MIB);
  OK(cuDevicePrimaryCtxRelease_v2(0));
  CHECK_EQ(gpu_held(), 24 * MIB);
  OK(cuDevicePrimaryCtxRelease_v2(0));
  CHECK_EQ(gpu_held(), 8 * MIB);

  OK(cuDevicePrimaryCtxRetain(&primary, 0));
  OK(cuCtxSetCurrent(primary));
  OK(cuMemAlloc_v2(&theirs, 16 * MIB));
  OK(cuDevicePrimaryCtxReset_v2(0));
  CHECK_EQ(gpu_held(), 8 * MIB);
  OK(cuCtxSetCurrent(gpu_context));
  OK(cuMemFree_v2(mine));
  CHECK_EQ(gpu_held(), 0);
  return TEST_END;
}
