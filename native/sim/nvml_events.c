#include "nvml.h"

#include "clock.h"
#include "fault.h"

#include <stdlib.h>

enum { EVENT_SET_MAGIC = 0x45565345 };

static const unsigned long long SUPPORTED = nvmlEventTypeSingleBitEccError | nvmlEventTypeDoubleBitEccError |
                                            nvmlEventTypePState | nvmlEventTypeXidCriticalError | nvmlEventTypeClock;
static const uint64_t POLL_NS = 100000000; /* the loss of a GPU is no event, so it is polled at this interval */

struct nvmlEventSet_st {
  uint32_t magic;
  uint32_t seen; /* events up to here were delivered, or are older than the set */
  unsigned long long types[SIM_MAX_GPUS];
  uint32_t since[SIM_MAX_GPUS];
};

/* ---- memory errors ---- */

SIM_API nvmlReturn_t nvmlDeviceGetEccMode(nvmlDevice_t device, nvmlEnableState_t *current, nvmlEnableState_t *pending) {
  ENTER_GPU(device);
  NVML_NEED(current != NULL && pending != NULL);
  *current = *pending = NVML_FEATURE_ENABLED;
  return NVML_SUCCESS;
}

SIM_API nvmlReturn_t nvmlDeviceGetTotalEccErrors(nvmlDevice_t device, nvmlMemoryErrorType_t type,
                                                 nvmlEccCounterType_t counter, unsigned long long *errors) {
  ENTER_GPU(device);
  NVML_NEED(errors != NULL && (unsigned int)type <= 1 && (unsigned int)counter <= 1);
  *errors = atomic_load(&nvml.machine->boards[gpu].ecc[type][counter]);
  return NVML_SUCCESS;
}

/* All simulated errors are in device memory. */
SIM_API nvmlReturn_t nvmlDeviceGetMemoryErrorCounter(nvmlDevice_t device, nvmlMemoryErrorType_t type,
                                                     nvmlEccCounterType_t counter, nvmlMemoryLocation_t where,
                                                     unsigned long long *errors) {
  NVML_NEED(errors != NULL && (unsigned int)where <= NVML_MEMORY_LOCATION_REGISTER_FILE);
  NVML_TRY(nvmlDeviceGetTotalEccErrors(device, type, counter, errors));
  if (where != NVML_MEMORY_LOCATION_DEVICE_MEMORY) *errors = 0;
  return NVML_SUCCESS;
}

SIM_API nvmlReturn_t nvmlDeviceGetRemappedRows(nvmlDevice_t device, unsigned int *corrected, unsigned int *uncorrected,
                                               unsigned int *pending, unsigned int *failed) {
  ENTER_GPU(device);
  NVML_NEED(corrected != NULL && uncorrected != NULL && pending != NULL && failed != NULL);
  if (nvml_gpu(gpu)->major < 8) return NVML_ERROR_NOT_SUPPORTED;
  *corrected = *uncorrected = *pending = *failed = 0;
  return NVML_SUCCESS;
}

/* ---- events ---- */

static nvmlReturn_t check(nvmlEventSet_t set) {
  return set != NULL && set->magic == EVENT_SET_MAGIC ? NVML_SUCCESS : NVML_ERROR_INVALID_ARGUMENT;
}

SIM_API nvmlReturn_t nvmlDeviceGetSupportedEventTypes(nvmlDevice_t device, unsigned long long *types) {
  ENTER_GPU(device);
  NVML_NEED(types != NULL);
  *types = SUPPORTED;
  return NVML_SUCCESS;
}

SIM_API nvmlReturn_t nvmlEventSetCreate(nvmlEventSet_t *set) {
  ENTER();
  NVML_NEED(set != NULL);
  *set = calloc(1, sizeof **set);
  if (*set == NULL) return NVML_ERROR_MEMORY;
  (*set)->magic = EVENT_SET_MAGIC;
  (*set)->seen = atomic_load(&nvml.machine->nvml_event_count);
  return NVML_SUCCESS;
}

SIM_API nvmlReturn_t nvmlEventSetFree(nvmlEventSet_t set) {
  ENTER();
  NVML_TRY(check(set));
  set->magic = 0;
  free(set);
  return NVML_SUCCESS;
}

SIM_API nvmlReturn_t nvmlDeviceRegisterEvents(nvmlDevice_t device, unsigned long long types, nvmlEventSet_t set) {
  ENTER_GPU(device);
  NVML_TRY(check(set));
  if (types & ~SUPPORTED) return NVML_ERROR_NOT_SUPPORTED;
  if (set->types[gpu] == 0) set->since[gpu] = atomic_load(&nvml.machine->nvml_event_count);
  set->types[gpu] |= types;
  return NVML_SUCCESS;
}

/* The next event for this set. */
static bool next(nvmlEventSet_t set, nvmlEventData_t *data) {
  uint32_t count = atomic_load(&nvml.machine->nvml_event_count);
  if (count - set->seen > SIM_NVML_EVENTS) set->seen = count - SIM_NVML_EVENTS; /* older ones are overwritten */
  while (set->seen != count) {
    struct sim_nvml_event event = nvml.machine->nvml_events[set->seen % SIM_NVML_EVENTS];
    /* An event of an instance is reported for its GPU and names the instance. */
    bool of_instance = nvml_is_instance(event.gpu);
    uint32_t gpu = of_instance ? (uint32_t)nvml_gpu(event.gpu)->parent : event.gpu;
    bool early = (int32_t)(set->seen - set->since[gpu]) < 0;
    set->seen++;
    if (early || (set->types[gpu] & event.type) == 0) continue;
    *data = (nvmlEventData_t){.device = nvml_handle(gpu),
                              .eventType = event.type,
                              .eventData = event.data,
                              .gpuInstanceId = of_instance ? nvml_gpu(event.gpu)->gpu_instance : 0xFFFFFFFF,
                              .computeInstanceId = of_instance ? 0 : 0xFFFFFFFF};
    return true;
  }
  return false;
}

static bool has_lost(const struct nvmlEventSet_st *set) {
  for (uint32_t i = 0; i < nvml.machine->node.count; i++)
    if (set->types[i] != 0 && atomic_load(&nvml.machine->boards[i].lost)) return true;
  return false;
}

static nvmlReturn_t wait(nvmlEventSet_t set, nvmlEventData_t *data, unsigned int timeout_ms) {
  uint64_t end = sim_monotonic_ns() + (uint64_t)timeout_ms * 1000000;
  for (;;) {
    uint32_t count = atomic_load(&nvml.machine->nvml_event_count);
    if (next(set, data)) return NVML_SUCCESS;
    if (has_lost(set)) return NVML_ERROR_GPU_IS_LOST;
    uint64_t now = sim_monotonic_ns();
    if (now >= end) return NVML_ERROR_TIMEOUT;
    sim_nvml_event_wait(nvml.machine, count, end - now < POLL_NS ? end - now : POLL_NS);
  }
}

SIM_API nvmlReturn_t nvmlEventSetWait_v2(nvmlEventSet_t set, nvmlEventData_t *data, unsigned int timeout_ms) {
  ENTER();
  NVML_TRY(check(set));
  NVML_NEED(data != NULL);
  return wait(set, data, timeout_ms);
}

SIM_API nvmlReturn_t nvmlEventSetWait(nvmlEventSet_t set, nvmlEventData_v1_t *data, unsigned int timeout_ms) {
  nvmlEventData_t whole;
  ENTER();
  NVML_TRY(check(set));
  NVML_NEED(data != NULL);
  NVML_TRY(wait(set, &whole, timeout_ms));
  *data = (nvmlEventData_v1_t){whole.device, whole.eventType, whole.eventData};
  return NVML_SUCCESS;
}
