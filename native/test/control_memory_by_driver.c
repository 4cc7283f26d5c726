#include "gpu.h"

/* A pass through the ways to allocate device memory beyond the library's limit. */
static void allocate_all(void) {
  CUdeviceptr a, b;
  size_t pitch;
  OK(cuMemAlloc_v2(&a, 100 * MIB));
  OK(cuMemAllocPitch_v2(&b, &pitch, MIB, 100, 4));
  OK(cuMemFree_v2(b));
  OK(cuMemAllocAsync(&b, 100 * MIB, NULL));
  OK(cuMemFreeAsync(b, NULL));
  OK(cuCtxSynchronize());
  CUmemGenericAllocationHandle handle;
  CUmemAllocationProp properties = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                    .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0}};
  OK(cuMemCreate(&handle, 100 * MIB, &properties, 0));
  OK(cuMemRelease(handle));
  CUarray array;
  CUDA_ARRAY_DESCRIPTOR shape = {.Width = 5000, .Height = 5000, .Format = CU_AD_FORMAT_FLOAT, .NumChannels = 1};
  OK(cuArrayCreate_v2(&array, &shape));
  OK(cuArrayDestroy(array));
  OK(cuCtxSetLimit(CU_LIMIT_MALLOC_HEAP_SIZE, 100 * MIB));
  OK(cuMemFree_v2(a));
  CHECK_EQ(gpu_held(), 0);
  CHECK_EQ(gpu_denied(VGPU_DENIED_ALLOC), 0);
}

int main(void) {
  TEST_BEGIN("where the driver keeps the memory limit, the library charges managed memory only");
  sandbox_make();
  struct vgpu_limits *limits = sandbox_limits(gpu_uuid(), 64 * MIB, 100, 0);
  limits->header.policy |= VGPU_POLICY_MEMORY_BY_DRIVER;
  gpu_open();
  allocate_all();

  CUdeviceptr managed, more;
  OK(cuMemAllocManaged(&managed, 40 * MIB, CU_MEM_ATTACH_GLOBAL));
  CHECK_EQ(gpu_held(), 40 * MIB);
  REFUSED(cuMemAllocManaged(&more, 25 * MIB, CU_MEM_ATTACH_GLOBAL));
  CHECK_EQ(gpu_denied(VGPU_DENIED_MANAGED), 1);
  OK(cuMemAlloc_v2(&more, 100 * MIB));
  OK(cuMemFree_v2(more));
  CHECK_EQ(gpu_held(), 40 * MIB);
  OK(cuMemFree_v2(managed));
  CHECK_EQ(gpu_held(), 0);

  size_t left, total;
  OK(cuDeviceTotalMem_v2(&total, 0));
  CHECK_EQ(total, 64 * MIB);
  OK(cuMemGetInfo_v2(&left, &total));
  CHECK_EQ(total, 64 * MIB);

  /* The agent takes the policy back: this process goes on as it began. */
  __atomic_fetch_and(&limits->header.policy, ~(uint32_t)VGPU_POLICY_MEMORY_BY_DRIVER, __ATOMIC_RELAXED);
  allocate_all();
  return TEST_END;
}
