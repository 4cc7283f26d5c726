#include "sim_nvml.h"

int main(void) {
  nvmlEventSet_t set, late;
  nvmlEventData_t data;
  nvmlEventData_v1_t old;
  unsigned long long types, errors;
  TEST_BEGIN("XIDs and memory errors reach registered event sets once each, including those caused by kernels");
  sim_describe("{\"gpus\": [{}, {}]}");
  NVML_OK(nvmlInit_v2());
  NVML_OK(nvmlDeviceGetSupportedEventTypes(sim_device(0), &types));
  CHECK(types & nvmlEventTypeXidCriticalError);
  CHECK_EQ(sim_tool("xid 0 99"), 0);
  NVML_OK(nvmlEventSetCreate(&set));
  NVML_OK(nvmlDeviceRegisterEvents(sim_device(0), nvmlEventTypeXidCriticalError, set));
  CHECK_EQ(nvmlDeviceRegisterEvents(sim_device(0), 1ull << 40, set), NVML_ERROR_NOT_SUPPORTED);
  CHECK_EQ(nvmlEventSetWait_v2(set, &data, 0), NVML_ERROR_TIMEOUT);
  CHECK_EQ(sim_tool("xid 1 48"), 0);
  CHECK_EQ(sim_tool("ecc 0 uncorrected 3"), 0);
  CHECK_EQ(sim_tool("xid 0 31"), 0);
  CHECK_EQ(sim_tool("xid 0 43"), 0);
  NVML_OK(nvmlEventSetWait_v2(set, &data, 1000));
  CHECK_EQ(data.eventType, nvmlEventTypeXidCriticalError);
  CHECK_EQ(data.eventData, 31);
  CHECK(data.device == sim_device(0));
  NVML_OK(nvmlEventSetWait(set, &old, 1000));
  CHECK_EQ(old.eventData, 43);
  CHECK_EQ(nvmlEventSetWait_v2(set, &data, 1), NVML_ERROR_TIMEOUT);

  NVML_OK(nvmlDeviceGetTotalEccErrors(sim_device(0), NVML_MEMORY_ERROR_TYPE_UNCORRECTED, NVML_VOLATILE_ECC, &errors));
  CHECK_EQ(errors, 3);
  NVML_OK(nvmlDeviceGetTotalEccErrors(sim_device(1), NVML_MEMORY_ERROR_TYPE_UNCORRECTED, NVML_VOLATILE_ECC, &errors));
  CHECK_EQ(errors, 0);
  NVML_OK(nvmlEventSetCreate(&late));
  NVML_OK(
      nvmlDeviceRegisterEvents(sim_device(1), nvmlEventTypeDoubleBitEccError | nvmlEventTypeXidCriticalError, late));
  CHECK_EQ(sim_tool("ecc 1 uncorrected 1"), 0);
  NVML_OK(nvmlEventSetWait_v2(late, &data, 1000));
  CHECK_EQ(data.eventType, nvmlEventTypeDoubleBitEccError);

  /* A kernel with an illegal access: its context fails, the GPU continues. */
  sim_begin();
  OK(cuLaunchKernel(sim_function("illegal_address"), 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
  CHECK_EQ(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
  CUdeviceptr memory;
  CHECK_EQ(cuMemAlloc_v2(&memory, 4096), CUDA_ERROR_ILLEGAL_ADDRESS);
  NVML_OK(nvmlEventSetWait_v2(set, &data, 1000));
  CHECK_EQ(data.eventData, 31);
  CHECK_EQ(nvmlEventSetWait_v2(set, &data, 1), NVML_ERROR_TIMEOUT);
  OK(cuDevicePrimaryCtxReset_v2(0));
  CUcontext again;
  OK(cuDevicePrimaryCtxRetain(&again, 0));
  OK(cuCtxSetCurrent(again));
  OK(cuMemAlloc_v2(&memory, 4096));
  OK(cuMemFree_v2(memory));
  OK(cuDevicePrimaryCtxRelease_v2(0));

  NVML_OK(nvmlEventSetFree(set));
  NVML_OK(nvmlEventSetFree(late));
  NVML_OK(nvmlShutdown());
  return TEST_END;
}
