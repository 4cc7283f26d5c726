#include "nvml.h"

#include "ledger.h"
#include "process.h"

/* Memory of a GPU or instance in use by all programs and the driver. With MIG, a GPU reports the sum over its
 * instances. */
struct amounts {
  uint64_t total, reserved, used;
};

static struct amounts amounts_of(uint32_t gpu) {
  sim_process_sweep(nvml.machine, false);
  uint64_t total = nvml_gpu(gpu)->memory_bytes;
  struct amounts amounts = {.total = total,
                            .reserved = total - sim_ledger_capacity(nvml.machine, gpu),
                            .used = sim_ledger_used(nvml.machine, gpu)};
  for (uint32_t i = nvml.machine->node.count; i < nvml.machine->node.boards; i++)
    if (nvml_gpu(i)->parent == (int32_t)gpu) amounts.used += sim_ledger_used(nvml.machine, i);
  return amounts;
}

/* The first version has no field for reserved memory and counts it as used. */
SIM_API nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t *memory) {
  ENTER_DEVICE(device);
  NVML_NEED(memory != NULL);
  struct amounts amounts = amounts_of(gpu);
  memory->total = amounts.total;
  memory->used = amounts.reserved + amounts.used;
  memory->free = amounts.total - memory->used;
  return NVML_SUCCESS;
}

SIM_API nvmlReturn_t nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t device, nvmlMemory_v2_t *memory) {
  ENTER_DEVICE(device);
  NVML_NEED(memory != NULL);
  if (memory->version != nvmlMemory_v2) return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
  struct amounts amounts = amounts_of(gpu);
  struct sim_ledger_view view = {0};
  bool limited = nvml_process() >= 0 && sim_ledger_limited(nvml.machine, (uint32_t)nvml_process(), gpu, &view);
  if (limited) amounts = (struct amounts){.total = view.total, .used = view.used};
  memory->total = amounts.total;
  memory->reserved = amounts.reserved;
  memory->used = amounts.used;
  memory->free = amounts.total - amounts.reserved - amounts.used;
  return NVML_SUCCESS;
}

SIM_API nvmlReturn_t nvmlDeviceGetBAR1MemoryInfo(nvmlDevice_t device, nvmlBAR1Memory_t *memory) {
  ENTER_GPU(device);
  NVML_NEED(memory != NULL);
  memory->bar1Total = nvml_gpu(gpu)->memory_bytes;
  memory->bar1Used = (unsigned long long)2 << 20;
  memory->bar1Free = memory->bar1Total > memory->bar1Used ? memory->bar1Total - memory->bar1Used : 0;
  return NVML_SUCCESS;
}
