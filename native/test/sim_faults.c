#include "sim_nvml.h"

int main(void) {
  nvmlUtilization_t rates;
  nvmlMemory_t memory;
  nvmlDevice_t device;
  CUdeviceptr pointer;
  unsigned int count;
  TEST_BEGIN("faults are injected by call, count and GPU; a GPU is lost and restored");
  sim_describe("{\"gpus\": [{}, {}]}");
  NVML_OK(nvmlInit_v2());
  sim_begin();
  OK(cuMemAlloc_v2(&pointer, 4096));

  CHECK_EQ(sim_tool("fault nvmlDeviceGetUtilizationRates not-supported --gpu 1"), 0);
  NVML_OK(nvmlDeviceGetUtilizationRates(sim_device(0), &rates));
  CHECK_EQ(nvmlDeviceGetUtilizationRates(sim_device(1), &rates), NVML_ERROR_NOT_SUPPORTED);
  CHECK_EQ(sim_tool("fault 'nvmlDeviceGetMemory*' 999 --times 2"), 0);
  CHECK_EQ(nvmlDeviceGetMemoryInfo(sim_device(0), &memory), NVML_ERROR_UNKNOWN);
  CHECK_EQ(nvmlDeviceGetMemoryInfo(sim_device(1), &memory), NVML_ERROR_UNKNOWN);
  NVML_OK(nvmlDeviceGetMemoryInfo(sim_device(0), &memory));

  /* A name matches all variants of the call, but no other call with the same prefix. */
  CHECK_EQ(sim_tool("fault cuMemAlloc out-of-memory --times 1"), 0);
  CUdeviceptr managed, other;
  OK(cuMemAllocManaged(&managed, 4096, CU_MEM_ATTACH_GLOBAL));
  CHECK_EQ(cuMemAlloc_v2(&other, 4096), CUDA_ERROR_OUT_OF_MEMORY);
  OK(cuMemAlloc_v2(&other, 4096));
  CHECK_EQ(sim_tool("fault cuLaunchKernel 719"), 0);
  uint64_t us = 1;
  void *parameters[] = {&us};
  CUfunction busy = sim_function("busy_us");
  CHECK_EQ(cuLaunchKernel(busy, 1, 1, 1, 1, 1, 1, 0, NULL, parameters, NULL), CUDA_ERROR_LAUNCH_FAILED);
  CHECK_EQ(cuLaunchKernel_ptsz(busy, 1, 1, 1, 1, 1, 1, 0, NULL, parameters, NULL), CUDA_ERROR_LAUNCH_FAILED);
  CHECK_EQ(sim_tool("clear cuLaunchKernel"), 0);
  OK(cuLaunchKernel(busy, 1, 1, 1, 1, 1, 1, 0, NULL, parameters, NULL));
  CHECK_EQ(nvmlDeviceGetUtilizationRates(sim_device(1), &rates), NVML_ERROR_NOT_SUPPORTED);
  CHECK_EQ(sim_tool("clear"), 0);
  NVML_OK(nvmlDeviceGetUtilizationRates(sim_device(1), &rates));
  CHECK(sim_tool("fault cuMemAlloc nonsense") != 0);
  CHECK(sim_tool("xid 7 31") != 0);
  OK(cuMemFree_v2(managed));
  OK(cuMemFree_v2(other));
  OK(cuCtxSynchronize());

  device = sim_device(0);
  CHECK_EQ(sim_tool("lose 0"), 0);
  CHECK_EQ(nvmlDeviceGetMemoryInfo(device, &memory), NVML_ERROR_GPU_IS_LOST);
  CHECK_EQ(nvmlDeviceGetHandleByIndex_v2(0, &device), NVML_ERROR_GPU_IS_LOST);
  NVML_OK(nvmlDeviceGetMemoryInfo(sim_device(1), &memory));
  NVML_OK(nvmlDeviceGetCount_v2(&count));
  CHECK_EQ(count, 2);
  CHECK_EQ(cuMemFree_v2(pointer), CUDA_ERROR_UNKNOWN);
  CHECK_EQ(cuLaunchKernel(busy, 1, 1, 1, 1, 1, 1, 0, NULL, parameters, NULL), CUDA_ERROR_UNKNOWN);
  CHECK_EQ(sim_tool("restore 0"), 0);
  NVML_OK(nvmlDeviceGetMemoryInfo(sim_device(0), &memory));
  /* Contexts from before the loss stay failed, new ones work. */
  CHECK_EQ(cuCtxSynchronize(), CUDA_ERROR_UNKNOWN);
  OK(cuDevicePrimaryCtxReset_v2(0));
  CUcontext again;
  OK(cuDevicePrimaryCtxRetain(&again, 0));
  OK(cuCtxSetCurrent(again));
  OK(cuMemAlloc_v2(&pointer, 4096));
  OK(cuMemFree_v2(pointer));
  OK(cuDevicePrimaryCtxRelease_v2(0));
  NVML_OK(nvmlShutdown());
  return TEST_END;
}
