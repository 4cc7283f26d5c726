#include "array_size.h"
#include "tap.h"

static CUDA_ARRAY3D_DESCRIPTOR array(size_t width, size_t height, size_t depth, CUarray_format format,
                                     unsigned int channels, unsigned int flags) {
  return (CUDA_ARRAY3D_DESCRIPTOR){width, height, depth, format, channels, flags};
}

static uint64_t bytes(CUDA_ARRAY3D_DESCRIPTOR description) {
  return array_bytes(&description);
}

static uint64_t levels(CUDA_ARRAY3D_DESCRIPTOR description, unsigned int count) {
  return mipmap_bytes(&description, count);
}

int main(void) {
  TEST_BEGIN("the size of arrays includes all levels, layers and faces, and a dimension of zero counts as one");
  CHECK_EQ(bytes(array(8192, 8192, 0, CU_AD_FORMAT_FLOAT, 1, 0)), 8192ull * 8192 * 4);
  CHECK_EQ(bytes(array(1024, 0, 0, CU_AD_FORMAT_UNSIGNED_INT8, 4, 0)), 4096);
  CHECK_EQ(bytes(array(64, 64, 64, CU_AD_FORMAT_HALF, 2, 0)), 64 * 64 * 64 * 4);
  CHECK_EQ(bytes(array(64, 0, 10, CU_AD_FORMAT_UNSIGNED_INT16, 1, CUDA_ARRAY3D_LAYERED)), 64 * 10 * 2);
  CHECK_EQ(bytes(array(128, 128, 6, CU_AD_FORMAT_UNSIGNED_INT8, 4, CUDA_ARRAY3D_CUBEMAP)), 128 * 128 * 6 * 4);
  CHECK_EQ(bytes(array(100, 100, 0, CU_AD_FORMAT_NV12, 3, 0)), 15000);
  CHECK_EQ(bytes(array(64, 64, 0, CU_AD_FORMAT_BC1_UNORM, 4, 0)), 2048);
  CHECK_EQ(bytes(array(16, 16, 0, (CUarray_format)0x7ffffff0, 4, 0)), 16 * 16 * 16);
  CHECK_EQ(bytes(array(1 << 20, 1 << 20, 0, CU_AD_FORMAT_FLOAT, 4, CUDA_ARRAY3D_SPARSE)), 0);
  CHECK_EQ(bytes(array(1 << 20, 1 << 20, 0, CU_AD_FORMAT_FLOAT, 4, CUDA_ARRAY3D_DEFERRED_MAPPING)), 0);
  CHECK(bytes(array((size_t)1 << 62, (size_t)1 << 62, 4, CU_AD_FORMAT_FLOAT, 4, 0)) == UINT64_MAX);

  CHECK_EQ(levels(array(4, 4, 0, CU_AD_FORMAT_UNSIGNED_INT8, 1, 0), 3), 16 + 4 + 1);
  CHECK_EQ(levels(array(4, 4, 0, CU_AD_FORMAT_UNSIGNED_INT8, 1, 0), 99), 16 + 4 + 1);
  CHECK_EQ(levels(array(8, 2, 0, CU_AD_FORMAT_UNSIGNED_INT8, 1, 0), 4), 16 + 4 + 2 + 1);
  CHECK_EQ(levels(array(4, 4, 4, CU_AD_FORMAT_UNSIGNED_INT8, 1, 0), 3), 64 + 8 + 1);
  CHECK_EQ(levels(array(4, 4, 4, CU_AD_FORMAT_UNSIGNED_INT8, 1, CUDA_ARRAY3D_LAYERED), 3), 64 + 16 + 4);
  CHECK_EQ(levels(array(4, 4, 6, CU_AD_FORMAT_UNSIGNED_INT8, 1, CUDA_ARRAY3D_CUBEMAP), 1), 96);
  CHECK_EQ(levels(array(4, 4, 0, CU_AD_FORMAT_UNSIGNED_INT8, 1, CUDA_ARRAY3D_SPARSE), 3), 0);
  return TEST_END;
}
