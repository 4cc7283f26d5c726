#include "gpu.h"

int main(void) {
  TEST_BEGIN("an unenforced slice uses the driver without limit, accounting or process slot");
  sandbox_make();
  struct vgpu_limits *limits = sandbox_limits(gpu_uuid(), 64 * MIB, 1, 0);
  limits->header.policy |= VGPU_POLICY_UNENFORCED;
  gpu_open();
  CUdeviceptr pointer;
  size_t total, whole;
  OK(cuMemAlloc_v2(&pointer, 1024 * MIB));
  OK(cuDeviceTotalMem_v2(&whole, 0));
  CHECK(whole > 1024 * MIB);
  size_t left;
  OK(cuMemGetInfo_v2(&left, &total));
  CHECK(total > 1024 * MIB);
  CUfunction kernel = gpu_kernel("busy_us_20");
  for (int i = 0; i < 1000; i++)
    OK(gpu_launch(kernel, 1, NULL));
  OK(cuCtxSynchronize());

  struct vgpu_usage *usage = sandbox_usage();
  CHECK_EQ(usage->header.slot_high, 0);
  CHECK_EQ(usage->devices[0].launches, 0);
  CHECK_EQ(gpu_held(), 0);
  OK(cuMemFree_v2(pointer));
  return TEST_END;
}
