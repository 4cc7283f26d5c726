#include "sim.h"

static const size_t MIB = 1 << 20;

static uint64_t attribute(CUmemoryPool pool, CUmemPool_attribute which) {
  cuuint64_t value = 0;
  OK(cuMemPoolGetAttribute(pool, which, &value));
  return value;
}

int main(void) {
  CUmemoryPool pool;
  CUdeviceptr a, b, c;
  TEST_BEGIN("a pool is charged for its reserved memory, reuses memory in stream order, and can be trimmed");
  sim_jump();
  sim_begin();
  CUstream stream = sim_stream(CU_STREAM_NON_BLOCKING), other = sim_stream(CU_STREAM_NON_BLOCKING);
  size_t before = sim_free_bytes();
  OK(cuDeviceGetDefaultMemPool(&pool, 0));

  OK(cuMemAllocAsync(&a, 1000, stream));
  CHECK_EQ(before - sim_free_bytes(), 32 * MIB);
  CHECK_EQ(attribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT), 32 * MIB);
  CHECK_EQ(attribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT), 1024);
  OK(cuMemAllocAsync(&b, 20 * MIB, stream));
  CHECK_EQ(before - sim_free_bytes(), 32 * MIB);

  /* Freed after a kernel: the same stream reuses the memory at once, another one only after the kernel has ended. */
  sim_launch(stream, 80, 1000);
  OK(cuMemFreeAsync(b, stream));
  OK(cuMemAllocAsync(&c, 20 * MIB, other));
  CHECK(c != b);
  CHECK_EQ(before - sim_free_bytes(), 64 * MIB);
  CUdeviceptr again;
  OK(cuMemAllocAsync(&again, 20 * MIB, stream));
  CHECK_EQ(again, b);
  CHECK_EQ(attribute(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH), 40 * MIB + 1024);

  /* Without a threshold a synchronisation releases unused memory. */
  OK(cuMemFreeAsync(again, stream));
  OK(cuMemFreeAsync(c, other));
  CHECK_EQ(before - sim_free_bytes(), 64 * MIB);
  OK(cuStreamSynchronize(stream));
  OK(cuStreamSynchronize(other));
  CHECK_EQ(before - sim_free_bytes(), 32 * MIB);

  /* With a threshold it is kept until it is trimmed or memory is short. */
  cuuint64_t threshold = UINT64_MAX;
  OK(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &threshold));
  OK(cuMemAllocAsync(&b, 200 * MIB, stream));
  OK(cuMemFreeAsync(b, stream));
  OK(cuCtxSynchronize());
  CHECK_EQ(before - sim_free_bytes(), 224 * MIB);
  OK(cuMemPoolTrimTo(pool, 100 * MIB));
  CHECK_EQ(before - sim_free_bytes(), 128 * MIB);
  OK(cuMemAllocAsync(&b, 300 * MIB, stream));
  OK(cuMemFreeAsync(b, stream));
  OK(cuCtxSynchronize());
  OK(cuMemAlloc_v2(&b, before - 64 * MIB));
  CHECK_EQ(attribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT), 32 * MIB);
  CHECK_EQ(cuMemAllocAsync(&c, 100 * MIB, stream), CUDA_ERROR_OUT_OF_MEMORY);
  OK(cuMemFree_v2(b));

  CHECK_EQ(cuMemFreeAsync(b, stream), CUDA_ERROR_INVALID_VALUE);
  OK(cuMemFree_v2(a));
  CHECK_EQ(cuMemFree_v2(a), CUDA_ERROR_INVALID_VALUE);

  /* An explicit pool has a maximum size. */
  CUmemPoolProps properties = {
      .allocType = CU_MEM_ALLOCATION_TYPE_PINNED, .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}, .maxSize = 64 * MIB};
  CUmemoryPool own;
  OK(cuMemPoolCreate(&own, &properties));
  OK(cuMemAllocFromPoolAsync(&a, 60 * MIB, own, stream));
  CHECK_EQ(cuMemAllocFromPoolAsync(&b, 60 * MIB, own, stream), CUDA_ERROR_OUT_OF_MEMORY);
  OK(cuMemFreeAsync(a, stream));
  OK(cuStreamSynchronize(stream));
  OK(cuMemPoolDestroy(own));
  CHECK_EQ(cuMemPoolDestroy(pool), CUDA_ERROR_INVALID_VALUE);
  OK(cuMemPoolTrimTo(pool, 0));
  CHECK_EQ(sim_free_bytes(), before);

  /* Memory that a context uses again is not released with the context that used it first. */
  CUcontext first;
  OK(cuCtxCreate_v2(&first, 0, 0));
  OK(cuMemAllocAsync(&a, MIB, NULL));
  OK(cuMemFreeAsync(a, NULL));
  OK(cuCtxPopCurrent_v2(NULL));
  OK(cuMemAllocAsync(&b, MIB, stream));
  CHECK_EQ(b, a);
  OK(cuCtxDestroy_v2(first));
  OK(cuMemsetD8_v2(b, 1, MIB));
  OK(cuMemFreeAsync(b, stream));
  sim_end();
  return TEST_END;
}
