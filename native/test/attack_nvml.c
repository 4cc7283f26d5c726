#include "gpu.h"
#include "nvml_abi.h"
#include "passing.h"

/* A process of another container on the same GPU: 64 MiB and all of the GPU's time. */
static int neighbour(int line) {
  CUdeviceptr pointer;
  uint64_t us = 20000;
  void *arguments[] = {&us};
  char word;
  unsetenv("VGPU_SANDBOX_DIRECTORY");
  gpu_open();
  CUfunction kernel = gpu_kernel("busy_us");
  OK(cuMemAlloc_v2(&pointer, 64 * MIB));
  passing_say(line, "", 1);
  while (recv(line, &word, 1, MSG_DONTWAIT) != 1) {
    OK(cuLaunchKernel(kernel, 80, 1, 1, 32, 1, 1, 0, NULL, arguments, NULL));
    OK(cuCtxSynchronize());
  }
  return TEST_END;
}

#define FINE(call) CHECK_EQ(call, NVML_SUCCESS)

int main(void) {
  TEST_BEGIN("attack: NVML shows a container only its own processes and their use, and refuses changes to the GPU");
  TEST_NOT_WRAPPED("utilisation comes by the clock");
  sandbox_make();
  sandbox_limits(gpu_uuid(), 256 * MIB, 50, 0);
  int line;
  char word;
  pid_t child = passing_start(neighbour, &line);
  passing_hear(line, &word, 1);
  gpu_open();
  CUdeviceptr pointer;
  nvmlDevice_t device;
  nvmlProcessInfo_t processes[8];
  nvmlProcessInfo_v1_t first[8];
  nvmlProcessUtilizationSample_t samples[8];
  nvmlProcessUtilizationInfo_v1_t reports[8];
  nvmlProcessDetail_v1_t details[8];
  nvmlUtilization_t rates;
  nvmlValueType_t type;
  nvmlSample_t sample[8];
  unsigned int count = 8;
  OK(cuMemAlloc_v2(&pointer, 16 * MIB));
  FINE(nvmlInit_v2());
  FINE(nvmlDeviceGetHandleByIndex_v2(0, &device));
  usleep(400000);

  FINE(nvmlDeviceGetComputeRunningProcesses_v3(device, &count, processes));
  CHECK_EQ(count, 1);
  CHECK_EQ(processes[0].pid, getpid());
  count = 8;
  FINE(nvmlDeviceGetComputeRunningProcesses(device, &count, first));
  CHECK_EQ(count, 1);
  CHECK_EQ(first[0].pid, getpid());
  count = 0;
  CHECK_EQ(nvmlDeviceGetComputeRunningProcesses_v2(device, &count, NULL), NVML_ERROR_INSUFFICIENT_SIZE);
  CHECK_EQ(count, 1);
  count = 8;
  FINE(nvmlDeviceGetGraphicsRunningProcesses_v3(device, &count, processes));
  CHECK_EQ(count, 0);
  nvmlProcessDetailList_t list = {
      .version = nvmlProcessDetailList_v1, .mode = 0, .numProcArrayEntries = 8, .procArray = details};
  if (nvmlDeviceGetRunningProcessDetailList(device, &list) == NVML_SUCCESS) CHECK_EQ(list.numProcArrayEntries, 1);

  /* The other container uses all of the GPU's time, this process none. */
  FINE(nvmlDeviceGetUtilizationRates(device, &rates));
  CHECK_EQ(rates.gpu, 0);
  count = 8;
  CHECK_EQ(nvmlDeviceGetProcessUtilization(device, samples, &count, 0), NVML_ERROR_NOT_FOUND);
  nvmlProcessesUtilizationInfo_t info = {
      .version = nvmlProcessesUtilizationInfo_v1, .processSamplesCount = 8, .procUtilArray = reports};
  CHECK(nvmlDeviceGetProcessesUtilizationInfo(device, &info) != NVML_SUCCESS);
  count = 8;
  CHECK_EQ(nvmlDeviceGetSamples(device, NVML_GPU_UTILIZATION_SAMPLES, 0, &type, &count, sample),
           NVML_ERROR_NO_PERMISSION);

  nvmlComputeMode_t mode;
  CHECK_EQ(nvmlDeviceSetComputeMode(device, NVML_COMPUTEMODE_PROHIBITED), NVML_ERROR_NO_PERMISSION);
  FINE(nvmlDeviceGetComputeMode(device, &mode));
  CHECK_EQ(mode, NVML_COMPUTEMODE_DEFAULT);
  passing_say(line, "", 1);
  CHECK_EQ(passing_end(child), 0);

  /* The process sees its own use. */
  CUfunction kernel = gpu_kernel("busy_ms_20");
  for (int i = 0; i < 20; i++) {
    OK(gpu_launch(kernel, 80, NULL));
    OK(cuCtxSynchronize());
  }
  FINE(nvmlDeviceGetUtilizationRates(device, &rates));
  CHECK(rates.gpu > 0);
  count = 8;
  FINE(nvmlDeviceGetProcessUtilization(device, samples, &count, 0));
  CHECK_EQ(samples[0].pid, getpid());
  return TEST_END;
}
