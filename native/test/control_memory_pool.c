#include "gpu.h"

static uint64_t reserved(CUmemoryPool pool) {
  cuuint64_t bytes;
  OK(cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &bytes));
  return bytes;
}

int main(void) {
  TEST_BEGIN("reserved memory of a pool is charged once, reused without charge, and trimmed before a refusal");
  sandbox_make();
  sandbox_limits(gpu_uuid(), 256 * MIB, 100, 0);
  gpu_open();
  CUmemoryPool pool;
  CUstream stream;
  cuuint64_t keep_all = UINT64_MAX;
  OK(cuDeviceGetDefaultMemPool(&pool, 0));
  OK(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &keep_all));
  OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));

  CUdeviceptr a, b;
  OK(cuMemAllocAsync(&a, 60 * MIB, stream));
  OK(cuMemAllocAsync(&b, 60 * MIB, stream));
  CHECK_EQ(gpu_held(), reserved(pool));
  CHECK(gpu_held() >= 120 * MIB);
  OK(cuMemFreeAsync(a, stream));
  OK(cuMemFreeAsync(b, stream));
  OK(cuStreamSynchronize(stream));
  CHECK_EQ(gpu_held(), reserved(pool));

  /* Repeated allocations reuse memory that the pool has reserved. */
  uint64_t before = gpu_held();
  for (int i = 0; i < 50; i++) {
    OK(cuMemAllocAsync(&a, 60 * MIB, stream));
    OK(cuMemAllocAsync(&b, 60 * MIB, stream));
    OK(cuMemFreeAsync(a, stream));
    OK(cuMemFreeAsync(b, stream));
  }
  OK(cuStreamSynchronize(stream));
  CHECK_EQ(gpu_held(), before);

  /* Unused memory of the pool is no reason to refuse. */
  CUdeviceptr large;
  OK(cuMemAlloc_v2(&large, 250 * MIB));
  CHECK(gpu_held() <= 256 * MIB);
  REFUSED(cuMemAllocAsync(&a, 60 * MIB, stream));
  CHECK_EQ(gpu_denied(VGPU_DENIED_ASYNC), 1);
  OK(cuMemFree_v2(large));

  CUmemPoolProps properties = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                               .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
  CUmemoryPool own;
  OK(cuMemPoolCreate(&own, &properties));
  OK(cuMemAllocFromPoolAsync(&a, 100 * MIB, own, stream));
  CHECK_EQ(gpu_held(), reserved(own) + reserved(pool));
  OK(cuMemAllocFromPoolAsync(&b, 100 * MIB, own, stream));
  CUdeviceptr c;
  REFUSED(cuMemAllocFromPoolAsync(&c, 100 * MIB, own, stream));
  CHECK_EQ(gpu_denied(VGPU_DENIED_POOL), 1);
  /* A synchronous free of memory from a pool is allowed. */
  OK(cuMemFree_v2(a));
  OK(cuMemFreeAsync(b, stream));
  OK(cuStreamSynchronize(stream));
  OK(cuMemPoolTrimTo(own, 0));
  CHECK_EQ(reserved(own), 0);
  CHECK_EQ(gpu_held(), reserved(pool));
  OK(cuMemPoolDestroy(own));
  OK(cuMemPoolTrimTo(pool, 0));
  CHECK_EQ(gpu_held(), 0);
  return TEST_END;
}
