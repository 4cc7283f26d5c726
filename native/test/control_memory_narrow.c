#include "gpu.h"

int main(void) {
  TEST_BEGIN("arrays of CUDA 2 are charged in contexts of that version, and refused in later ones");
  sandbox_make();
  sandbox_limits(gpu_uuid(), 4096 * MIB, 100, 0);
  gpu_open();
  CUarray array;
  CUDA_ARRAY_DESCRIPTOR_v1 flat = {1024, 1024, CU_AD_FORMAT_HALF, 2};
  CUDA_ARRAY3D_DESCRIPTOR_v1 cube = {64, 64, 64, CU_AD_FORMAT_FLOAT, 1, 0};
  CHECK_EQ(cuArrayCreate(&array, &flat), CUDA_ERROR_INVALID_CONTEXT);
  CHECK_EQ(cuArray3DCreate(&array, &cube), CUDA_ERROR_INVALID_CONTEXT);
  CHECK_EQ(gpu_held(), 0);

  /* Beside a later context the driver refuses one of CUDA 2. */
  CUcontext context;
  uint64_t with_one = gpu_held();
  REFUSED(cuCtxCreate(&context, 0, 0));
  CHECK_EQ(gpu_held(), with_one);
  CHECK_EQ(gpu_denied(VGPU_DENIED_CONTEXT), 0);
  OK(cuCtxDestroy_v2(gpu_context));
  OK(cuCtxCreate(&context, 0, 0));
  uint64_t before = gpu_held();
  OK(cuArrayCreate(&array, &flat));
  CHECK_EQ(gpu_held() - before, 4 * MIB);
  OK(cuArrayDestroy(array));
  OK(cuArray3DCreate(&array, &cube));
  CHECK_EQ(gpu_held() - before, MIB);
  OK(cuArrayDestroy(array));
  CHECK_EQ(gpu_held(), before);
  return TEST_END;
}
