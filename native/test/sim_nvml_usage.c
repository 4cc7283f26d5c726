#include "sim_nvml.h"

static const uint64_t MIB = 1 << 20;
static struct sim_pipe ready, go;

/* Uses 20 percent of a GPU: a kernel of 20 ms every 100 ms while the clock runs. */
static int worker(void *nothing) {
  CUdeviceptr memory;
  (void)nothing;
  sim_begin();
  OK(cuMemAlloc_v2(&memory, 100 * MIB));
  sim_say(&ready, (uint64_t)getpid());
  while (sim_hear(&go)) {
    sim_launch(NULL, 1, 20000);
    sim_say(&ready, 1);
  }
  OK(cuMemFree_v2(memory));
  sim_end();
  return TEST_END;
}

int main(void) {
  nvmlMemory_t memory;
  nvmlMemory_v2_t memory_v2 = {.version = nvmlMemory_v2};
  nvmlProcessInfo_v1_t old[4];
  nvmlProcessInfo_t new[4];
  nvmlUtilization_t rates;
  nvmlProcessUtilizationSample_t samples[8];
  nvmlSample_t history[128];
  nvmlValueType_t type;
  unsigned int count;
  TEST_BEGIN("NVML shows memory, processes with their pids, and the utilisation of the last complete window");
  setenv("GPU_SIM_CLOCK", "manual", 1);
  ready = sim_pipe_open();
  go = sim_pipe_open();
  pid_t child = sim_process(worker, NULL);
  uint64_t pid = sim_hear(&ready);
  NVML_OK(nvmlInit_v2());
  nvmlDevice_t device = sim_device(0);

  NVML_OK(nvmlDeviceGetMemoryInfo(device, &memory));
  CHECK_EQ(memory.total, 16384 * MIB);
  CHECK_EQ(memory.used, (256 + 256 + 2 + 100) * MIB);
  CHECK_EQ(memory.free, memory.total - memory.used);
  NVML_OK(nvmlDeviceGetMemoryInfo_v2(device, &memory_v2));
  CHECK_EQ(memory_v2.reserved, 256 * MIB);
  CHECK_EQ(memory_v2.used, 358 * MIB);
  CHECK_EQ(memory_v2.reserved + memory_v2.used + memory_v2.free, memory_v2.total);
  memory_v2.version = 1;
  CHECK_EQ(nvmlDeviceGetMemoryInfo_v2(device, &memory_v2), NVML_ERROR_ARGUMENT_VERSION_MISMATCH);

  count = 0;
  CHECK_EQ(nvmlDeviceGetComputeRunningProcesses_v3(device, &count, NULL), NVML_ERROR_INSUFFICIENT_SIZE);
  CHECK_EQ(count, 1);
  count = 4;
  NVML_OK(nvmlDeviceGetComputeRunningProcesses_v3(device, &count, new));
  CHECK_EQ(count, 1);
  CHECK_EQ(new[0].pid, pid);
  CHECK_EQ(new[0].usedGpuMemory, 358 * MIB);
  CHECK_EQ(new[0].gpuInstanceId, 0xffffffff);
  count = 4;
  NVML_OK(nvmlDeviceGetComputeRunningProcesses(device, &count, old));
  CHECK(count == 1 && old[0].pid == pid && old[0].usedGpuMemory == 358 * MIB);
  count = 4;
  NVML_OK(nvmlDeviceGetGraphicsRunningProcesses_v3(device, &count, new));
  CHECK_EQ(count, 0);

  /* No value is known before the first window has ended. */
  NVML_OK(nvmlDeviceGetUtilizationRates(device, &rates));
  CHECK_EQ(rates.gpu, 0);
  count = 8;
  CHECK_EQ(nvmlDeviceGetProcessUtilization(device, samples, &count, 0), NVML_ERROR_NOT_FOUND);
  for (int i = 0; i < 10; i++) {
    sim_say(&go, 1);
    sim_hear(&ready);
    CHECK_EQ(sim_tool("advance-clock 100ms"), 0);
  }
  /* A second: six windows of 1/6 s, each with 20 to 40 ms of work. */
  NVML_OK(nvmlDeviceGetUtilizationRates(device, &rates));
  CHECK_BETWEEN(rates.gpu, 11, 24);
  CHECK_EQ(rates.memory, 0);
  count = 8;
  NVML_OK(nvmlDeviceGetProcessUtilization(device, samples, &count, 0));
  CHECK_EQ(count, 1);
  CHECK_EQ(samples[0].pid, pid);
  CHECK_EQ(samples[0].smUtil, rates.gpu);
  unsigned long long seen = samples[0].timeStamp;
  count = 8;
  CHECK_EQ(nvmlDeviceGetProcessUtilization(device, samples, &count, seen), NVML_ERROR_NOT_FOUND);

  count = 128;
  NVML_OK(nvmlDeviceGetSamples(device, NVML_GPU_UTILIZATION_SAMPLES, 0, &type, &count, history));
  CHECK_BETWEEN(count, 5, 6);
  unsigned int sum = 0;
  for (unsigned int i = 0; i < count; i++)
    sum += history[i].sampleValue.uiVal;
  CHECK_BETWEEN(sum / count, 17, 20);
  CHECK_EQ(history[count - 1].timeStamp, seen);
  CHECK_EQ(nvmlDeviceGetSamples(device, NVML_GPU_UTILIZATION_SAMPLES, seen, &type, &count, history),
           NVML_ERROR_NOT_FOUND);

  /* Idle: the GPU's windows are empty, and the process has no new sample. */
  CHECK_EQ(sim_tool("advance-clock 1s"), 0);
  NVML_OK(nvmlDeviceGetUtilizationRates(device, &rates));
  CHECK_EQ(rates.gpu, 0);
  sim_say(&go, 0);
  CHECK_EQ(sim_wait(child), 0);
  count = 4;
  NVML_OK(nvmlDeviceGetComputeRunningProcesses_v3(device, &count, new));
  CHECK_EQ(count, 0);

  /* The sample of a process that has ended is listed for a while, unless a later time is asked for. */
  count = 8;
  NVML_OK(nvmlDeviceGetProcessUtilization(device, samples, &count, 0));
  CHECK_EQ(count, 1);
  CHECK_EQ(samples[0].pid, pid);
  CHECK_BETWEEN(samples[0].smUtil, 5, 24);
  CHECK(samples[0].timeStamp >= seen);
  seen = samples[0].timeStamp;
  count = 8;
  NVML_OK(nvmlDeviceGetProcessUtilization(device, samples, &count, seen - 1));
  CHECK_EQ(count, 1);
  count = 8;
  CHECK_EQ(nvmlDeviceGetProcessUtilization(device, samples, &count, seen), NVML_ERROR_NOT_FOUND);
  count = 0;
  CHECK_EQ(nvmlDeviceGetProcessUtilization(device, samples, &count, 0), NVML_ERROR_INSUFFICIENT_SIZE);
  CHECK_EQ(count, 1);
  CHECK_EQ(nvmlDeviceGetProcessUtilization(device, NULL, &count, 0), NVML_ERROR_INSUFFICIENT_SIZE);
  CHECK(count > 1);
  CHECK_EQ(sim_tool("advance-clock 61s"), 0);
  count = 8;
  CHECK_EQ(nvmlDeviceGetProcessUtilization(device, samples, &count, 0), NVML_ERROR_NOT_FOUND);
  NVML_OK(nvmlShutdown());
  return TEST_END;
}
