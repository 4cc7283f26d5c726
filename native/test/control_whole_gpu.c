#include "gpu.h"

int main(void) {
  TEST_BEGIN("a whole GPU is neither paced nor charged for launches, until its limits change");
  sandbox_make();
  struct vgpu_limits *limits = sandbox_limits(gpu_uuid(), 0, 100, 0);
  gpu_open();
  struct vgpu_usage *usage = sandbox_usage();
  CUfunction kernel = gpu_kernel("busy_us_1");
  for (int i = 0; i < 1000; i++)
    OK(gpu_launch(kernel, 1, NULL));
  OK(cuCtxSynchronize());
  CHECK_EQ(usage->devices[0].charged_ns, 0);
  CHECK_EQ(usage->devices[0].samples, 0);
  CHECK_EQ(usage->devices[0].level_at_ns, 0);
  CUdeviceptr pointer;
  size_t left, total, whole;
  OK(cuDeviceTotalMem_v2(&whole, 0));
  OK(cuMemGetInfo_v2(&left, &total));
  CHECK_EQ(total, whole);
  OK(cuMemAlloc_v2(&pointer, 2048 * MIB));
  CHECK_EQ(gpu_held(), 2048 * MIB);
  OK(cuMemFree_v2(pointer));

  struct vgpu_device_live live = limits->live[0][0];
  live.share = 50;
  sandbox_publish(limits, 0, live);
  for (int i = 0; i < 1000; i++)
    OK(gpu_launch(kernel, 1, NULL));
  OK(cuCtxSynchronize());
  CHECK(usage->devices[0].charged_ns > 0);
  CHECK(usage->devices[0].samples > 0);

  live.share = 100;
  sandbox_publish(limits, 0, live);
  OK(gpu_launch(kernel, 1, NULL));
  uint64_t charged = usage->devices[0].charged_ns;
  for (int i = 0; i < 1000; i++)
    OK(gpu_launch(kernel, 1, NULL));
  OK(cuCtxSynchronize());
  CHECK_EQ(usage->devices[0].charged_ns, charged);
  return TEST_END;
}
