/* MIG in NVML: the mode of a GPU, and its instances as devices. Each is one GPU instance with one compute instance;
 * nvml_partition.c creates and destroys them. */
#include "mig.h"
#include "nvml.h"

enum { INSTANCES_OF_GPU = 7 };

/* GPUs before Ampere do not support MIG. */
SIM_API nvmlReturn_t nvmlDeviceGetMigMode(nvmlDevice_t device, unsigned int *current, unsigned int *pending) {
  ENTER_GPU(device);
  NVML_NEED(current != NULL && pending != NULL);
  if (nvml_gpu(gpu)->major < 8) return NVML_ERROR_NOT_SUPPORTED;
  *current = *pending = nvml_gpu(gpu)->mig ? NVML_DEVICE_MIG_ENABLE : NVML_DEVICE_MIG_DISABLE;
  return NVML_SUCCESS;
}

SIM_API nvmlReturn_t nvmlDeviceGetMaxMigDeviceCount(nvmlDevice_t device, unsigned int *count) {
  ENTER_GPU(device);
  NVML_NEED(count != NULL);
  *count = nvml_gpu(gpu)->major < 8 ? 0 : INSTANCES_OF_GPU;
  return NVML_SUCCESS;
}

SIM_API nvmlReturn_t nvmlDeviceGetMigDeviceHandleByIndex(nvmlDevice_t device, unsigned int index, nvmlDevice_t *mig) {
  ENTER_GPU(device);
  NVML_NEED(mig != NULL && index < INSTANCES_OF_GPU);
  if (nvml_gpu(gpu)->major < 8) return NVML_ERROR_NOT_SUPPORTED;
  for (uint32_t i = nvml.machine->node.count; i < nvml.machine->node.boards; i++) {
    if (nvml_gpu(i)->parent != (int32_t)gpu || !nvml_gpu(i)->computes || index-- > 0) continue;
    *mig = nvml_handle(i);
    return NVML_SUCCESS;
  }
  return NVML_ERROR_NOT_FOUND;
}

SIM_API nvmlReturn_t nvmlDeviceIsMigDeviceHandle(nvmlDevice_t device, unsigned int *is_mig) {
  ENTER_DEVICE(device);
  NVML_NEED(is_mig != NULL);
  *is_mig = nvml_is_instance(gpu);
  return NVML_SUCCESS;
}

/* Entry of calls that accept only instances. */
static nvmlReturn_t enter_instance(const char *call, nvmlDevice_t device, uint32_t *instance) {
  NVML_TRY(nvml_enter_device(call, device, instance));
  return nvml_is_instance(*instance) ? NVML_SUCCESS : NVML_ERROR_INVALID_ARGUMENT;
}

#define ENTER_INSTANCE(device)                                                                                         \
  uint32_t instance;                                                                                                   \
  NVML_TRY(enter_instance(__func__, device, &instance))

SIM_API nvmlReturn_t nvmlDeviceGetDeviceHandleFromMigDeviceHandle(nvmlDevice_t mig, nvmlDevice_t *device) {
  ENTER_INSTANCE(mig);
  NVML_NEED(device != NULL);
  *device = nvml_handle((uint32_t)nvml_gpu(instance)->parent);
  return NVML_SUCCESS;
}

SIM_API nvmlReturn_t nvmlDeviceGetGpuInstanceId(nvmlDevice_t device, unsigned int *id) {
  ENTER_INSTANCE(device);
  NVML_NEED(id != NULL);
  *id = nvml_gpu(instance)->gpu_instance;
  return NVML_SUCCESS;
}

SIM_API nvmlReturn_t nvmlDeviceGetComputeInstanceId(nvmlDevice_t device, unsigned int *id) {
  ENTER_INSTANCE(device);
  NVML_NEED(id != NULL);
  *id = 0;
  return NVML_SUCCESS;
}

SIM_API nvmlReturn_t nvmlDeviceGetAttributes_v2(nvmlDevice_t device, nvmlDeviceAttributes_t *attributes) {
  ENTER_DEVICE(device);
  NVML_NEED(attributes != NULL);
  if (!nvml_is_instance(gpu)) return NVML_ERROR_NOT_SUPPORTED;
  const struct sim_gpu *described = nvml_gpu(gpu);
  *attributes = (nvmlDeviceAttributes_t){.multiprocessorCount = described->sms,
                                         .sharedCopyEngineCount = described->compute_slices,
                                         .gpuInstanceSliceCount = described->compute_slices,
                                         .computeInstanceSliceCount = described->compute_slices,
                                         .memorySizeMB = described->memory_bytes >> 20};
  return NVML_SUCCESS;
}
