#include "sim.h"

#define MIB ((size_t)1 << 20)

static CUmemoryPool make(CUmemAllocationType type, CUmemLocationType place) {
  CUmemPoolProps properties = {.allocType = type, .location = {.type = place, .id = 0}};
  CUmemoryPool pool = NULL;
  OK(cuMemPoolCreate(&pool, &properties));
  return pool;
}

int main(void) {
  TEST_BEGIN("host memory pools use no GPU memory, and managed pools use it while there is some");
  sim_begin();
  CUdeviceptr pointer, more;
  unsigned int flag;
  CUstream stream = sim_stream(CU_STREAM_NON_BLOCKING);
  size_t before = sim_free_bytes();

  CUmemoryPool host = make(CU_MEM_ALLOCATION_TYPE_PINNED, CU_MEM_LOCATION_TYPE_HOST);
  OK(cuMemAllocFromPoolAsync(&pointer, 100 * MIB, host, stream));
  CHECK_EQ(sim_free_bytes(), before);
  ((volatile char *)(uintptr_t)pointer)[100 * MIB - 1] = 7;
  OK(cuPointerGetAttribute(&flag, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, pointer));
  CHECK_EQ(flag, CU_MEMORYTYPE_HOST);
  OK(cuMemFreeAsync(pointer, stream));
  OK(cuStreamSynchronize(stream));
  OK(cuMemPoolDestroy(host));

  CUmemoryPool managed = make(CU_MEM_ALLOCATION_TYPE_MANAGED, CU_MEM_LOCATION_TYPE_NONE);
  OK(cuMemAllocFromPoolAsync(&pointer, 128 * MIB, managed, stream));
  CHECK_EQ(sim_free_bytes(), before - 128 * MIB);
  OK(cuPointerGetAttribute(&flag, CU_POINTER_ATTRIBUTE_IS_MANAGED, pointer));
  CHECK_EQ(flag, 1);
  ((volatile char *)(uintptr_t)pointer)[0] = 7;
  CUmemoryPool of;
  OK(cuPointerGetAttribute(&of, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, pointer));
  CHECK(of == managed);
  CUmemAllocationType type;
  OK(cuMemPoolGetAttribute(managed, CU_MEMPOOL_ATTR_ALLOCATION_TYPE, &type));
  CHECK_EQ(type, CU_MEM_ALLOCATION_TYPE_MANAGED);
  /* More than the GPU has: the rest is placed on the host. */
  OK(cuMemAllocFromPoolAsync(&more, before, managed, stream));
  OK(cuMemFreeAsync(more, stream));
  OK(cuMemFree_v2(pointer));
  OK(cuStreamSynchronize(stream));
  OK(cuMemPoolDestroy(managed));
  CHECK_EQ(sim_free_bytes(), before);

  /* Each location has its own default pool. */
  CUmemLocation device = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0}, near = {.type = CU_MEM_LOCATION_TYPE_HOST};
  CUmemoryPool plain, migrating, pinned;
  OK(cuMemGetDefaultMemPool(&plain, &device, CU_MEM_ALLOCATION_TYPE_PINNED));
  OK(cuMemGetDefaultMemPool(&migrating, &device, CU_MEM_ALLOCATION_TYPE_MANAGED));
  OK(cuMemGetDefaultMemPool(&pinned, &near, CU_MEM_ALLOCATION_TYPE_PINNED));
  CHECK(plain != migrating && migrating != pinned && plain != pinned);
  CHECK_EQ(cuDeviceSetMemPool(0, pinned), CUDA_ERROR_INVALID_VALUE);

  CUmemPoolProps wrong = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED};
  CHECK_EQ(cuMemPoolCreate(&of, &wrong), CUDA_ERROR_INVALID_VALUE);
  wrong.location.type = CU_MEM_LOCATION_TYPE_DEVICE_LOCALITY_DOMAIN;
  CHECK_EQ(cuMemPoolCreate(&of, &wrong), CUDA_ERROR_NOT_SUPPORTED);
  return TEST_END;
}
