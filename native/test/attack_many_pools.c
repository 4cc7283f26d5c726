#include "gpu.h"

/* More than a table of fixed size would hold. */
#define POOLS 150
#define LIMIT (256 * MIB)

int main(void) {
  TEST_BEGIN("attack: unused memory in pools is charged, for any number of pools");
  sandbox_make();
  sandbox_limits(gpu_uuid(), LIMIT, 100, 0);
  gpu_open();
  size_t free_before, free_after, total;
  CUdeviceptr pointer;
  cuuint64_t keep = UINT64_MAX, reserved, kept = 0;
  OK(cuMemGetInfo_v2(&free_before, &total));
  CUmemPoolProps properties = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                               .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
  CUmemoryPool pools[POOLS];
  int refused = 0;
  for (int i = 0; i < POOLS; i++) {
    OK(cuMemPoolCreate(&pools[i], &properties));
    OK(cuMemPoolSetAttribute(pools[i], CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &keep));
    CUresult result = cuMemAllocFromPoolAsync(&pointer, 1 * MIB, pools[i], NULL);
    refused += result == CUDA_ERROR_OUT_OF_MEMORY;
    if (result == CUDA_SUCCESS) OK(cuMemFreeAsync(pointer, NULL));
    OK(cuStreamSynchronize(NULL));
    kept = 0;
    for (int j = 0; j <= i; j++) {
      OK(cuMemPoolGetAttribute(pools[j], CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &reserved));
      kept += reserved;
    }
    CHECK(kept <= LIMIT);
  }
  /* The other pools release their unused memory, so every pool can allocate. */
  CHECK_EQ(refused, 0);
  CHECK_EQ(gpu_held(), kept);
  OK(cuMemGetInfo_v2(&free_after, &total));
  CHECK(free_before - free_after <= LIMIT);
  for (int i = 0; i < POOLS; i++)
    OK(cuMemPoolDestroy(pools[i]));
  CHECK_EQ(gpu_held(), 0);
  return TEST_END;
}
