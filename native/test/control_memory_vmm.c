#include "gpu.h"

static CUmemAllocationProp on_device = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                        .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};

int main(void) {
  TEST_BEGIN("memory of cuMemCreate is charged until its last handle and mapping are gone");
  sandbox_make();
  sandbox_limits(gpu_uuid(), 64 * MIB, 100, 0);
  gpu_open();
  size_t grain;
  OK(cuMemGetAllocationGranularity(&grain, &on_device, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
  size_t bytes = 32 * MIB / grain * grain;
  CUmemGenericAllocationHandle one, two, three, again;
  OK(cuMemCreate(&one, bytes, &on_device, 0));
  OK(cuMemCreate(&two, bytes, &on_device, 0));
  CHECK_EQ(gpu_held(), 2 * bytes);
  REFUSED(cuMemCreate(&three, grain, &on_device, 0));
  CHECK_EQ(gpu_denied(VGPU_DENIED_VMM), 1);

  CUdeviceptr range;
  OK(cuMemAddressReserve(&range, 2 * bytes, 0, 0, 0));
  OK(cuMemMap(range, bytes, 0, one, 0));
  OK(cuMemMap(range + bytes, bytes, 0, two, 0));
  /* The common pattern: the handle is released at once, and the mapping keeps the memory. */
  OK(cuMemRelease(one));
  OK(cuMemRelease(two));
  CHECK_EQ(gpu_held(), 2 * bytes);
  REFUSED(cuMemCreate(&three, grain, &on_device, 0));

  OK(cuMemRetainAllocationHandle(&again, (void *)range));
  OK(cuMemUnmap(range, 2 * bytes));
  CHECK_EQ(gpu_held(), bytes);
  OK(cuMemRelease(again));
  CHECK_EQ(gpu_held(), 0);

  OK(cuMemCreate(&one, bytes, &on_device, 0));
  OK(cuMemMap(range, bytes, 0, one, 0));
  OK(cuMemRetainAllocationHandle(&again, (void *)range));
  OK(cuMemRelease(one));
  OK(cuMemUnmap(range, bytes));
  CHECK_EQ(gpu_held(), bytes);
  OK(cuMemRelease(again));
  CHECK_EQ(gpu_held(), 0);
  CHECK(cuMemRelease(again) != CUDA_SUCCESS);
  CHECK_EQ(gpu_held(), 0);

  CUmemAllocationProp on_host = {.type = CU_MEM_ALLOCATION_TYPE_PINNED, .location = {CU_MEM_LOCATION_TYPE_HOST, 0}};
  if (cuMemCreate(&one, 128 * MIB, &on_host, 0) == CUDA_SUCCESS) {
    CHECK_EQ(gpu_held(), 0);
    OK(cuMemRelease(one));
  }
  CHECK_EQ(gpu_held(), 0);
  OK(cuMemAddressFree(range, 2 * bytes));
  return TEST_END;
}
