#include "gpu.h"

int main(void) {
  TEST_BEGIN("arrays and mipmapped arrays are charged and limited");
  sandbox_make();
  sandbox_limits(gpu_uuid(), 512 * MIB, 100, 0);
  gpu_open();
  CUarray array, other;
  CUDA_ARRAY_DESCRIPTOR flat = {8192, 8192, CU_AD_FORMAT_FLOAT, 1};
  OK(cuArrayCreate_v2(&array, &flat));
  CHECK_EQ(gpu_held(), 256 * MIB);
  CUDA_ARRAY_DESCRIPTOR larger = {8192, 8193, CU_AD_FORMAT_FLOAT, 1};
  REFUSED(cuArrayCreate_v2(&other, &larger));
  CHECK_EQ(gpu_denied(VGPU_DENIED_ARRAY), 1);
  OK(cuArrayDestroy(array));
  CHECK_EQ(gpu_held(), 0);

  CUDA_ARRAY_DESCRIPTOR line = {65536, 0, CU_AD_FORMAT_UNSIGNED_INT8, 4};
  OK(cuArrayCreate_v2(&array, &line));
  CHECK_EQ(gpu_held(), 65536 * 4);
  OK(cuArrayDestroy(array));

  CUDA_ARRAY3D_DESCRIPTOR cube = {512, 512, 6, CU_AD_FORMAT_UNSIGNED_INT8, 4, CUDA_ARRAY3D_CUBEMAP};
  OK(cuArray3DCreate_v2(&array, &cube));
  CHECK_EQ(gpu_held(), 6 * MIB);
  OK(cuArrayDestroy(array));

  CUmipmappedArray mipmap, second;
  CUDA_ARRAY3D_DESCRIPTOR image = {8192, 8192, 0, CU_AD_FORMAT_FLOAT, 1, 0};
  OK(cuMipmappedArrayCreate(&mipmap, &image, 3));
  CHECK_EQ(gpu_held(), 256 * MIB + 64 * MIB + 16 * MIB);
  REFUSED(cuMipmappedArrayCreate(&second, &image, 1));
  CHECK_EQ(gpu_denied(VGPU_DENIED_MIPMAP), 1);
  OK(cuMipmappedArrayDestroy(mipmap));
  CHECK_EQ(gpu_held(), 0);
  return TEST_END;
}
