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
  CHECK_EQ(bytes(array(64, 64, 32, CU_AD_FORMAT_HALF, 2, 0)), 64 * 64 * 32 * 4);
  CHECK_EQ(bytes(array(64, 0, 8, CU_AD_FORMAT_UNSIGNED_INT16, 1, CUDA_ARRAY3D_LAYERED)), 64 * 8 * 2);
  CHECK_EQ(bytes(array(128, 128, 6, CU_AD_FORMAT_UNSIGNED_INT8, 4, CUDA_ARRAY3D_CUBEMAP)), 128 * 128 * 6 * 4);
  CHECK_EQ(bytes(array(128, 100, 0, CU_AD_FORMAT_NV12, 3, 0)), 192 * 100 + 256);
  CHECK_EQ(bytes(array(128, 64, 0, CU_AD_FORMAT_BC1_UNORM, 4, 0)), 4096);
  CHECK_EQ(bytes(array(16, 16, 0, (CUarray_format)0x7ffffff0, 4, 0)), 16 * 16 * 16);
  CHECK_EQ(bytes(array(1 << 20, 1 << 20, 0, CU_AD_FORMAT_FLOAT, 4, CUDA_ARRAY3D_SPARSE)), 0);
  CHECK_EQ(bytes(array(1 << 20, 1 << 20, 0, CU_AD_FORMAT_FLOAT, 4, CUDA_ARRAY3D_DEFERRED_MAPPING)), 0);
  CHECK(bytes(array((size_t)1 << 62, (size_t)1 << 62, 4, CU_AD_FORMAT_FLOAT, 4, 0)) == UINT64_MAX);

  /* Rows of at least 64 bytes, levels of at least 512, and blocks of 2 MiB beyond 1 MiB. */
  CHECK_EQ(bytes(array(1, 8, 0, CU_AD_FORMAT_UNSIGNED_INT8, 1, 0)), 512);
  CHECK_EQ(bytes(array(1, 100, 0, CU_AD_FORMAT_UNSIGNED_INT8, 1, 0)), 6656);
  CHECK_EQ(bytes(array(1024, 1024, 0, CU_AD_FORMAT_UNSIGNED_INT8, 1, 0)), 1 << 20);
  CHECK_EQ(bytes(array(1024, 1025, 0, CU_AD_FORMAT_UNSIGNED_INT8, 1, 0)), 2 << 20);
  CHECK_EQ(levels(array(1024, 1024, 0, CU_AD_FORMAT_FLOAT, 1, 0), 2), 6 << 20);

  CHECK_EQ(levels(array(64, 64, 0, CU_AD_FORMAT_UNSIGNED_INT8, 1, 0), 3), 4096 + 2048 + 1024);
  CHECK_EQ(levels(array(4, 4, 0, CU_AD_FORMAT_UNSIGNED_INT8, 1, 0), 99), 3 * 512);
  CHECK_EQ(levels(array(64, 16, 0, CU_AD_FORMAT_UNSIGNED_INT8, 1, 0), 7), 1024 + 6 * 512);
  CHECK_EQ(levels(array(64, 64, 64, CU_AD_FORMAT_UNSIGNED_INT8, 1, 0), 2), 64 * 64 * 64 + 64 * 32 * 32);
  CHECK_EQ(levels(array(64, 64, 6, CU_AD_FORMAT_UNSIGNED_INT8, 1, CUDA_ARRAY3D_LAYERED), 2), 64 * 64 * 6 + 64 * 32 * 6);
  CHECK_EQ(levels(array(64, 64, 6, CU_AD_FORMAT_UNSIGNED_INT8, 1, CUDA_ARRAY3D_CUBEMAP), 1), 64 * 64 * 6);
  CHECK_EQ(levels(array(64, 64, 0, CU_AD_FORMAT_UNSIGNED_INT8, 1, CUDA_ARRAY3D_SPARSE), 3), 0);
  return TEST_END;
}
