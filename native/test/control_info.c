#include "gpu.h"
#include "nvml_abi.h"

int main(void) {
  TEST_BEGIN("cuMemGetInfo, cuDeviceTotalMem and NVML show the same slice");
  sandbox_make();
  struct vgpu_limits *limits = sandbox_limits(gpu_uuid(), 1024 * MIB, 100, 0);
  gpu_open();
  CUdeviceptr pointer;
  size_t total, left;
  unsigned int narrow_total, narrow_left;
  nvmlDevice_t device;
  nvmlMemory_t memory;
  nvmlMemory_v2_t second = {.version = nvmlMemory_v2};
  OK(cuMemAlloc_v2(&pointer, 100 * MIB));
  OK(cuMemGetInfo_v2(&left, &total));
  CHECK_EQ(total, 1024 * MIB);
  CHECK_EQ(left, 924 * MIB);
  OK(cuDeviceTotalMem_v2(&total, 0));
  CHECK_EQ(total, 1024 * MIB);
  CHECK_EQ(cuMemGetInfo(&narrow_left, &narrow_total), CUDA_ERROR_INVALID_CONTEXT);
  OK(cuDeviceTotalMem(&narrow_total, 0));
  CHECK_EQ(narrow_total, 1024 * MIB);

  /* Driver overhead counts against the limit. */
  struct vgpu_device_live live = limits->live[0][0];
  live.driver_overhead_bytes = 300 * MIB;
  sandbox_publish(limits, 0, live);
  OK(cuMemGetInfo_v2(&left, &total));
  CHECK_EQ(left, 624 * MIB);
  CUdeviceptr more;
  REFUSED(cuMemAlloc_v2(&more, 624 * MIB + 1));

  CHECK_EQ(nvmlInit_v2(), NVML_SUCCESS);
  CHECK_EQ(nvmlDeviceGetHandleByUUID(gpu_uuid(), &device), NVML_SUCCESS);
  CHECK_EQ(nvmlDeviceGetMemoryInfo(device, &memory), NVML_SUCCESS);
  CHECK_EQ(memory.total, 1024 * MIB);
  CHECK_EQ(memory.used, 400 * MIB);
  CHECK_EQ(memory.free, 624 * MIB);
  CHECK_EQ(nvmlDeviceGetMemoryInfo_v2(device, &second), NVML_SUCCESS);
  CHECK_EQ(second.total, 1024 * MIB);
  CHECK_EQ(second.used, 400 * MIB);
  CHECK_EQ(second.free, 624 * MIB);

  /* The limit is lowered below the held memory: nothing is freed, and no allocation succeeds. */
  live.memory_limit_bytes = 200 * MIB;
  live.generation++;
  sandbox_publish(limits, 0, live);
  OK(cuMemGetInfo_v2(&left, &total));
  CHECK_EQ(total, 200 * MIB);
  CHECK_EQ(left, 0);
  REFUSED(cuMemAlloc_v2(&more, 1));
  CHECK_EQ(nvmlDeviceGetMemoryInfo(device, &memory), NVML_SUCCESS);
  CHECK_EQ(memory.used, 200 * MIB);
  CHECK_EQ(memory.free, 0);
  OK(cuMemFree_v2(pointer));
  CHECK_EQ(gpu_held(), 0);

  /* Without a limit the GPU's own values are shown. */
  live.memory_limit_bytes = 0;
  live.driver_overhead_bytes = 0;
  sandbox_publish(limits, 0, live);
  OK(cuMemGetInfo_v2(&left, &total));
  CHECK(total > 1024 * MIB);
  CHECK_EQ(nvmlShutdown(), NVML_SUCCESS);
  return TEST_END;
}
