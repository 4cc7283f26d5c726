#include "sim.h"

static const size_t MIB = 1 << 20;

static size_t cost_of(const CUDA_ARRAY3D_DESCRIPTOR_v2 *shape, unsigned int levels) {
  size_t before = sim_free_bytes(), after;
  if (levels == 0) {
    CUarray array;
    OK(cuArray3DCreate_v2(&array, shape));
    after = sim_free_bytes();
    OK(cuArrayDestroy(array));
  } else {
    CUmipmappedArray array;
    OK(cuMipmappedArrayCreate(&array, shape, levels));
    after = sim_free_bytes();
    OK(cuMipmappedArrayDestroy(array));
  }
  CHECK_EQ(sim_free_bytes(), before);
  return before - after;
}

int main(void) {
  TEST_BEGIN("arrays are charged for all layers, faces and levels, and a dimension of zero counts as one");
  sim_begin();
  CUDA_ARRAY3D_DESCRIPTOR_v2 flat = {8192, 8192, 0, CU_AD_FORMAT_FLOAT, 1, 0};
  CHECK_EQ(cost_of(&flat, 0), 256 * MIB);
  CUDA_ARRAY3D_DESCRIPTOR_v2 line = {131072, 0, 0, CU_AD_FORMAT_FLOAT, 4, 0};
  CHECK_EQ(cost_of(&line, 0), 2 * MIB);
  CUDA_ARRAY3D_DESCRIPTOR_v2 deep = {256, 256, 256, CU_AD_FORMAT_HALF, 2, 0};
  CHECK_EQ(cost_of(&deep, 0), 64 * MIB);
  CUDA_ARRAY3D_DESCRIPTOR_v2 layers = {1024, 1024, 10, CU_AD_FORMAT_UNSIGNED_INT8, 4, CUDA_ARRAY3D_LAYERED};
  CHECK_EQ(cost_of(&layers, 0), 40 * MIB);
  CUDA_ARRAY3D_DESCRIPTOR_v2 cube = {1024, 1024, 6, CU_AD_FORMAT_FLOAT, 1, CUDA_ARRAY3D_CUBEMAP};
  CHECK_EQ(cost_of(&cube, 0), 24 * MIB);
  /* 4 MiB + 1 + 1/4 + ...: a third more than the base level. */
  CUDA_ARRAY3D_DESCRIPTOR_v2 levels = {1024, 1024, 0, CU_AD_FORMAT_FLOAT, 1, 0};
  CHECK_EQ(cost_of(&levels, 1), 4 * MIB);
  CHECK_EQ(cost_of(&levels, 11), 6 * MIB);

  CUarray array, level;
  CUmipmappedArray mipmap;
  CUDA_ARRAY3D_DESCRIPTOR_v2 wrong = {1024, 512, 6, CU_AD_FORMAT_FLOAT, 1, CUDA_ARRAY3D_CUBEMAP}, told;
  CHECK_EQ(cuArray3DCreate_v2(&array, &wrong), CUDA_ERROR_INVALID_VALUE);
  wrong = (CUDA_ARRAY3D_DESCRIPTOR_v2){16, 16, 0, CU_AD_FORMAT_FLOAT, 3, 0};
  CHECK_EQ(cuArray3DCreate_v2(&array, &wrong), CUDA_ERROR_INVALID_VALUE);
  wrong = (CUDA_ARRAY3D_DESCRIPTOR_v2){131072, 65537, 0, CU_AD_FORMAT_FLOAT, 4, 0};
  CHECK_EQ(cuArray3DCreate_v2(&array, &wrong), CUDA_ERROR_INVALID_VALUE);
  wrong.Height = 65536;
  CHECK_EQ(cuArray3DCreate_v2(&array, &wrong), CUDA_ERROR_OUT_OF_MEMORY);
  OK(cuMipmappedArrayCreate(&mipmap, &levels, 11));
  OK(cuMipmappedArrayGetLevel(&level, mipmap, 3));
  OK(cuArray3DGetDescriptor_v2(&told, level));
  CHECK_EQ(told.Width, 128);
  CHECK_EQ(cuMipmappedArrayGetLevel(&level, mipmap, 11), CUDA_ERROR_INVALID_VALUE);
  OK(cuMipmappedArrayDestroy(mipmap));
  sim_end();
  return TEST_END;
}
