#define _GNU_SOURCE
#include "gpu_memory.h"
#include "nvml_abi.h"
#include "symbol_version.h"
#include <dlfcn.h>
#include <stddef.h>

#define NVML "libnvidia-ml-origin.so.1"
#define MOST_PROCESSES 512u

struct nvml {
#define MEMBER(symbol) __typeof__(&symbol) symbol;
#define EACH(DO)                                                                                                       \
  DO(nvmlInit_v2)                                                                                                      \
  DO(nvmlShutdown)                                                                                                     \
  DO(nvmlDeviceGetHandleByUUID)                                                                                        \
  DO(nvmlDeviceGetComputeRunningProcesses_v3)
  EACH(MEMBER)
};

/* The library stays loaded: other code of the process may use it as well. */
static bool find(struct nvml *nvml) {
  void *library = dlopen(NVML, RTLD_NOW | RTLD_LOCAL);
  if (library == NULL) return false;
  bool good = true;
#define FIND(symbol) good &= (nvml->symbol = (__typeof__(&symbol))dlsym(library, #symbol)) != NULL;
  EACH(FIND)
  return good;
}

static bool query(const struct nvml *nvml, const char *uuid, uint32_t pid, uint64_t *bytes, bool *listed) {
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
  struct nvml nvml;
  if (!find(&nvml) || nvml.nvmlInit_v2() != NVML_SUCCESS) return false;
  bool good = query(&nvml, uuid, pid, bytes, listed);
  nvml.nvmlShutdown();
  return good;
}
