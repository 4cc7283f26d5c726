#include "nvml.h"

#include "group.h"

#include <string.h>
#include <unistd.h>

_Static_assert(SIM_NO_LIMIT == NVML_DEVICE_MEMORY_LIMIT_MAX, "no limit has the same value in both");

static nvmlReturn_t code_of(enum sim_group_result result) {
  switch (result) {
  case SIM_GROUP_DONE:
    return NVML_SUCCESS;
  case SIM_GROUP_ABSENT:
    return NVML_ERROR_OPERATING_SYSTEM;
  case SIM_GROUP_UNLIMITED:
    return NVML_ERROR_NOT_FOUND;
  case SIM_GROUP_UNSUPPORTED:
    return NVML_ERROR_NOT_SUPPORTED;
  default:
    return NVML_ERROR_UNKNOWN;
  }
}

/* The library of an earlier driver lacks the calls; this one answers for it. */
static nvmlReturn_t check(uint32_t gpu) {
  if (sim_node_branch(&nvml.machine->node) < SIM_LIMITS_BRANCH) return NVML_ERROR_FUNCTION_NOT_FOUND;
  return nvml_gpu(gpu)->mig ? NVML_ERROR_NOT_SUPPORTED : NVML_SUCCESS;
}

static bool fits(uint32_t gpu, unsigned long long bytes) {
  return bytes <= nvml_gpu(gpu)->memory_bytes;
}

SIM_API nvmlReturn_t nvmlDeviceSetMemoryLimits_v1(nvmlDevice_t device, nvmlSetMemoryLimits_v1_t *limits) {
  ENTER_GPU(device);
  NVML_TRY(check(gpu));
  if (geteuid() != 0) return NVML_ERROR_NO_PERMISSION;
  NVML_NEED(limits != NULL && limits->nameSpace != NULL && limits->softLimit <= limits->hardLimit);
  NVML_NEED(fits(gpu, limits->softLimit) && (fits(gpu, limits->hardLimit) || limits->hardLimit == SIM_NO_LIMIT));
  struct sim_group_limits wanted = {.soft = limits->softLimit, .hard = limits->hardLimit};
  return code_of(sim_group_set(nvml.machine, gpu, limits->nameSpace, &wanted));
}

SIM_API nvmlReturn_t nvmlDeviceGetMemoryLimits_v1(nvmlDevice_t device, nvmlGetMemoryLimits_v1_t *limits) {
  struct sim_group_limits found;
  ENTER_GPU(device);
  NVML_TRY(check(gpu));
  NVML_NEED(limits != NULL && limits->nameSpace != NULL);
  NVML_TRY(code_of(sim_group_get(nvml.machine, gpu, limits->nameSpace, &found)));
  limits->softLimit = found.soft;
  limits->hardLimit = found.hard;
  limits->currentUsed = found.used;
  return NVML_SUCCESS;
}
