#include "gpu.h"

int main(void) {
  TEST_BEGIN("linear, pitched and managed memory is limited to what the driver takes for it");
  sandbox_make();
  sandbox_limits(gpu_uuid(), 64 * MIB, 100, 0);
  gpu_open();
  CUdeviceptr a, b, c;
  OK(cuMemAlloc_v2(&a, 40 * MIB));
  CHECK_EQ(gpu_held(), 40 * MIB);
  REFUSED(cuMemAlloc_v2(&b, 24 * MIB + 1));
  OK(cuMemAlloc_v2(&b, 24 * MIB));
  REFUSED(cuMemAlloc_v2(&c, 1));
  CHECK_EQ(gpu_denied(VGPU_DENIED_ALLOC), 2);
  OK(cuMemFree_v2(a));
  CHECK_EQ(gpu_held(), 24 * MIB);

  OK(cuMemAllocManaged(&a, 40 * MIB, CU_MEM_ATTACH_GLOBAL));
  REFUSED(cuMemAllocManaged(&c, 1, CU_MEM_ATTACH_GLOBAL));
  CHECK_EQ(gpu_denied(VGPU_DENIED_MANAGED), 1);
  OK(cuMemFree_v2(a));
  OK(cuMemFree_v2(b));
  CHECK_EQ(gpu_held(), 0);

  /* What is told to be free can be allocated at once, also beside small allocations. */
  size_t left, total;
  OK(cuMemAlloc_v2(&a, 1000));
  OK(cuMemGetInfo_v2(&left, &total));
  OK(cuMemAlloc_v2(&b, left));
  OK(cuMemFree_v2(b));
  OK(cuMemFree_v2(a));

  size_t pitch;
  OK(cuMemAllocPitch_v2(&a, &pitch, 1000, 100, 4));
  CHECK_EQ(gpu_held(), pitch * 100);
  OK(cuMemAllocPitch_v2(&b, &pitch, MIB, 62, 4));
  REFUSED(cuMemAllocPitch_v2(&c, &pitch, MIB, 2, 4));
  CHECK_EQ(gpu_denied(VGPU_DENIED_PITCH), 1);
  OK(cuMemFree_v2(a));
  OK(cuMemFree_v2(b));

  /* The calls of CUDA 2 only return addresses below 4 GiB, and the driver may have none. */
  CUdeviceptr_v1 narrow, other;
  unsigned int narrow_pitch;
  REFUSED(cuMemAlloc(&other, 65 * MIB));
  CHECK_EQ(gpu_denied(VGPU_DENIED_ALLOC), 3);
  if (cuMemAlloc(&narrow, 32 * MIB) == CUDA_SUCCESS) {
    CHECK_EQ(gpu_held(), 32 * MIB);
    REFUSED(cuMemAlloc(&other, 33 * MIB));
    OK(cuMemFree(narrow));
  }
  if (cuMemAllocPitch(&narrow, &narrow_pitch, 1000, 10, 4) == CUDA_SUCCESS) {
    CHECK_EQ(gpu_held(), narrow_pitch * 10);
    OK(cuMemFree(narrow));
  }
  CHECK_EQ(gpu_held(), 0);

  /* A failed driver call changes nothing, and the program gets the driver's result. */
  CHECK(cuMemFree_v2(0xdead0000) != CUDA_SUCCESS);
  CHECK_EQ(gpu_held(), 0);
  OK(cuMemFree_v2(0));
  return TEST_END;
}
