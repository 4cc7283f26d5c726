#include "gpu.h"

int main(void) {
  TEST_BEGIN("no memory can be allocated on a visible GPU that is not listed, unless the policy allows it");
  sandbox_make();
  struct vgpu_limits *limits = sandbox_limits("GPU-ffffffff-ffff-ffff-ffff-ffffffffffff", 64 * MIB, 50, 0);
  limits->header.log_level = VGPU_LOG_NONE;
  /* With the deny policy the GPU is hidden from the start. */
  CHECK_EQ(cuInit(0), CUDA_ERROR_NO_DEVICE);
  limits->header.policy = 0;
  gpu_open();
  limits->header.policy = VGPU_POLICY_DENY_UNLISTED;
  CUdeviceptr pointer;
  CUmemoryPool pool;
  CUmemGenericAllocationHandle handle;
  CUmemAllocationProp properties = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                    .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
  CUmemPoolProps pooled = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED, .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
  REFUSED(cuMemAlloc_v2(&pointer, 4096));
  REFUSED(cuMemAllocAsync(&pointer, 4096, NULL));
  REFUSED(cuMemCreate(&handle, 2 * MIB, &properties, 0));
  REFUSED(cuMemPoolCreate(&pool, &pooled));
  CHECK((sandbox_usage()->slots[0].self_test & VGPU_TEST_DEVICES_MATCHED) == 0);

  limits->header.policy = 0;
  OK(cuMemAlloc_v2(&pointer, 128 * MIB));
  OK(cuMemFree_v2(pointer));
  OK(cuMemAllocAsync(&pointer, 4096, NULL));
  OK(cuMemFreeAsync(pointer, NULL));
  OK(cuMemCreate(&handle, 2 * MIB, &properties, 0));
  OK(cuMemRelease(handle));
  CHECK_EQ(gpu_held(), 0);
  CUfunction kernel = gpu_kernel("busy_us_1");
  OK(gpu_launch(kernel, 1, NULL));
  return TEST_END;
}
