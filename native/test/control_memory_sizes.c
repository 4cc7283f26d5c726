#include "gpu.h"

int main(void) {
  TEST_BEGIN("sizes of zero and sizes that overflow leave the ledger as it was");
  sandbox_make();
  sandbox_limits(gpu_uuid(), 64 * MIB, 100, 0);
  gpu_open();
  CUdeviceptr pointer;
  CUarray array;
  CUmipmappedArray mipmap;
  size_t pitch;
  CHECK_EQ(cuMemAlloc_v2(&pointer, 0), CUDA_ERROR_INVALID_VALUE);
  CHECK(cuMemAllocPitch_v2(&pointer, &pitch, 0, 0, 4) != CUDA_SUCCESS);
  REFUSED(cuMemAlloc_v2(&pointer, SIZE_MAX));
  REFUSED(cuMemAlloc_v2(&pointer, SIZE_MAX - 511));
  REFUSED(cuMemAllocManaged(&pointer, SIZE_MAX, CU_MEM_ATTACH_GLOBAL));
  CHECK_EQ(cuMemAllocPitch_v2(&pointer, &pitch, SIZE_MAX, 2, 4), CUDA_ERROR_INVALID_VALUE);
  REFUSED(cuMemAllocPitch_v2(&pointer, &pitch, (size_t)1 << 33, (size_t)1 << 33, 4));
  CUDA_ARRAY3D_DESCRIPTOR endless = {(size_t)1 << 40, (size_t)1 << 40, 2, CU_AD_FORMAT_FLOAT, 4, 0};
  CHECK_EQ(cuArray3DCreate_v2(&array, &endless), CUDA_ERROR_INVALID_VALUE);
  CHECK_EQ(cuMipmappedArrayCreate(&mipmap, &endless, 10), CUDA_ERROR_INVALID_VALUE);
  REFUSED(cuMemAllocAsync(&pointer, SIZE_MAX, NULL));
  CUmemAllocationProp properties = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                    .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
  CUmemGenericAllocationHandle handle;
  CHECK_EQ(cuMemCreate(&handle, SIZE_MAX, &properties, 0), CUDA_ERROR_INVALID_VALUE);
  CHECK_EQ(gpu_held(), 0);
  CHECK(cuMemAlloc_v2(NULL, 4096) != CUDA_SUCCESS);
  CHECK(cuArrayCreate_v2(&array, NULL) != CUDA_SUCCESS);
  CHECK(cuMemCreate(&handle, 2 * MIB, NULL, 0) != CUDA_SUCCESS);
  CHECK(cuMemPoolCreate(NULL, NULL) != CUDA_SUCCESS);
  CHECK(cuLaunchKernelEx(NULL, NULL, NULL, NULL) != CUDA_SUCCESS);
  CHECK_EQ(gpu_held(), 0);
  return TEST_END;
}
