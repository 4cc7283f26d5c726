#include "sim.h"

static const size_t MIB = 1 << 20;

int main(void) {
  CUdeviceptr managed, huge, mapped;
  void *pinned;
  unsigned int type, is_managed;
  TEST_BEGIN("managed and host memory are accessible to the program; managed memory is charged to the GPU if it fits");
  sim_begin();
  size_t before = sim_free_bytes();
  OK(cuMemAllocManaged(&managed, 10 * MIB, CU_MEM_ATTACH_GLOBAL));
  CHECK_EQ(before - sim_free_bytes(), 10 * MIB);
  memset((void *)(uintptr_t)managed, 3, 10 * MIB);
  OK(cuPointerGetAttribute(&is_managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, managed + 5));
  CHECK_EQ(is_managed, 1);
  OK(cuMemAllocManaged(&huge, 20 * 1024 * MIB, CU_MEM_ATTACH_GLOBAL));
  CHECK_EQ(before - sim_free_bytes(), 10 * MIB);

  OK(cuMemHostAlloc(&pinned, 5 * MIB, CU_MEMHOSTALLOC_DEVICEMAP));
  CHECK_EQ(before - sim_free_bytes(), 10 * MIB);
  OK(cuMemHostGetDevicePointer_v2(&mapped, pinned, 0));
  OK(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, mapped));
  CHECK_EQ(type, CU_MEMORYTYPE_HOST);
  OK(cuMemcpy(mapped, managed, 100));
  CHECK_EQ(((char *)pinned)[99], 3);
  static char registered[8192];
  OK(cuMemHostRegister_v2(registered, sizeof registered, 0));
  CHECK_EQ(cuMemHostRegister_v2(registered, sizeof registered, 0), CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
  OK(cuMemHostUnregister(registered));
  CHECK_EQ(cuMemHostUnregister(registered), CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);

  OK(cuMemFreeHost(pinned));
  OK(cuMemFree_v2(huge));
  OK(cuMemFree_v2(managed));
  CHECK_EQ(sim_free_bytes(), before);
  sim_end();
  return TEST_END;
}
