#include "gpu_memory.h"
#include "driver_nvml.h"

#define MOST_PROCESSES 512u

static bool query(const struct driver_nvml *nvml, const char *uuid, uint32_t pid, uint64_t *bytes, bool *listed) {
  nvmlProcessInfo_t processes[MOST_PROCESSES];
  unsigned int count = MOST_PROCESSES;
  nvmlDevice_t device;
  if (nvml->nvmlDeviceGetHandleByUUID(uuid, &device) != NVML_SUCCESS) return false;
  if (nvml->nvmlDeviceGetComputeRunningProcesses_v3(device, &count, processes) != NVML_SUCCESS) return false;
  *bytes = 0;
  *listed = false;
  for (unsigned int i = 0; i < count; i++) {
    if (processes[i].pid != pid) continue;
    *bytes = processes[i].usedGpuMemory;
    *listed = true;
  }
  return *bytes != (uint64_t)NVML_VALUE_NOT_AVAILABLE;
}

bool gpu_memory_of(const char *uuid, uint32_t pid, uint64_t *bytes, bool *listed) {
  struct driver_nvml nvml;
  if (!driver_nvml_open(&nvml)) return false;
  bool good = query(&nvml, uuid, pid, bytes, listed);
  driver_nvml_close(&nvml);
  return good;
}
