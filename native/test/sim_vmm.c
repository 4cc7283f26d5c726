#include "sim.h"

static const size_t MIB = 1 << 20;

int main(void) {
  CUdeviceptr area;
  CUmemGenericAllocationHandle handle, again;
  size_t granularity;
  uint64_t word = 0x1122334455667788, got = 0;
  TEST_BEGIN(
      "virtual memory: address ranges are free, physical memory is charged, and all its mappings share contents");
  sim_begin();
  CUmemAllocationProp properties = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                    .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
  CUmemAccessDesc access = {.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}, .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  OK(cuMemGetAllocationGranularity(&granularity, &properties, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
  CHECK_EQ(granularity, 2 * MIB);
  size_t before = sim_free_bytes();
  OK(cuMemAddressReserve(&area, 64 * MIB, 0, 0, 0));
  CHECK_EQ(sim_free_bytes(), before);
  CHECK_EQ(cuMemCreate(&handle, MIB, &properties, 0), CUDA_ERROR_INVALID_VALUE);
  OK(cuMemCreate(&handle, 4 * MIB, &properties, 0));
  CHECK_EQ(before - sim_free_bytes(), 4 * MIB);

  OK(cuMemMap(area, 4 * MIB, 0, handle, 0));
  OK(cuMemMap(area + 8 * MIB, 4 * MIB, 0, handle, 0));
  CHECK_EQ(cuMemMap(area + 2 * MIB, 4 * MIB, 0, handle, 0), CUDA_ERROR_INVALID_VALUE);
  CHECK_EQ(cuMemcpyHtoD_v2(area, &word, sizeof word), CUDA_ERROR_INVALID_VALUE);
  OK(cuMemSetAccess(area, 4 * MIB, &access, 1));
  OK(cuMemSetAccess(area + 8 * MIB, 4 * MIB, &access, 1));
  OK(cuMemcpyHtoD_v2(area + 1000, &word, sizeof word));
  OK(cuMemcpyDtoH_v2(&got, area + 8 * MIB + 1000, sizeof got));
  CHECK(got == word);

  /* The memory lives as long as a handle or a mapping of it. */
  OK(cuMemRetainAllocationHandle(&again, (void *)(uintptr_t)area));
  CHECK(again == handle);
  OK(cuMemRelease(handle));
  OK(cuMemRelease(again));
  OK(cuMemUnmap(area, 4 * MIB));
  CHECK_EQ(before - sim_free_bytes(), 4 * MIB);
  CHECK_EQ(cuMemAddressFree(area, 64 * MIB), CUDA_ERROR_INVALID_VALUE);
  OK(cuMemUnmap(area + 8 * MIB, 4 * MIB));
  CHECK_EQ(sim_free_bytes(), before);
  OK(cuMemAddressFree(area, 64 * MIB));

  CHECK_EQ(cuMemCreate(&handle, 64 * 1024 * MIB, &properties, 0), CUDA_ERROR_OUT_OF_MEMORY);
  properties.location.id = 9;
  CHECK_EQ(cuMemCreate(&handle, 2 * MIB, &properties, 0), CUDA_ERROR_INVALID_DEVICE);
  sim_end();
  return TEST_END;
}
