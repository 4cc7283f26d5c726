#include "gpu.h"

int main(void) {
  TEST_BEGIN("a reservation is given back when the driver call fails with any error");
  sandbox_make();
  /* A limit above the GPU's memory, so that the driver refuses. */
  sandbox_limits(gpu_uuid(), 1ull << 40, 100, 0);
  gpu_open();
  size_t left, total;
  OK(cuMemGetInfo_v2(&left, &total));
  CUdeviceptr pointer;
  CUarray array;
  CUmipmappedArray mipmap;
  CUmemGenericAllocationHandle handle;
  size_t pitch;
  size_t large = 2 * total;
  CHECK_EQ(cuMemAlloc_v2(&pointer, large), CUDA_ERROR_OUT_OF_MEMORY);
  CHECK_EQ(cuMemAllocPitch_v2(&pointer, &pitch, large / 1024, 1024, 4), CUDA_ERROR_OUT_OF_MEMORY);
  CHECK(cuMemAllocAsync(&pointer, large, NULL) != CUDA_SUCCESS);
  CUDA_ARRAY3D_DESCRIPTOR bad = {1024, 1024, 0, (CUarray_format)0x7777, 3, 0};
  CHECK(cuArray3DCreate_v2(&array, &bad) != CUDA_SUCCESS);
  CHECK(cuMipmappedArrayCreate(&mipmap, &bad, 3) != CUDA_SUCCESS);
  CUmemAllocationProp properties = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                    .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
  CHECK(cuMemCreate(&handle, large / MIB * 2 * MIB, &properties, 0) != CUDA_SUCCESS);
  CHECK(cuMemCreate(&handle, 12345, &properties, 0) != CUDA_SUCCESS);
  CHECK_EQ(gpu_held(), 0);
  CHECK_EQ(gpu_denied(VGPU_DENIED_ALLOC), 0);

  OK(cuMemAlloc_v2(&pointer, MIB));
  OK(cuMemFree_v2(pointer));
  CHECK(cuMemFree_v2(pointer) != CUDA_SUCCESS);
  CHECK_EQ(gpu_held(), 0);

  /* Without a context the driver fails and nothing is charged. */
  OK(cuCtxSetCurrent(NULL));
  CHECK(cuMemAlloc_v2(&pointer, MIB) != CUDA_SUCCESS);
  CHECK_EQ(gpu_held(), 0);
  return TEST_END;
}
