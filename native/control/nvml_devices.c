/* The GPUs that NVML shows: those of the slice, numbered as in CUDA. Without this, a visible GPU outside of the slice
 * would look free although no memory can be allocated on it. */
#include "nvml_driver.h"
#include "nvml_view.h"
#include <stddef.h>

typedef __typeof__(nvmlDeviceGetHandleByIndex_v2) by_index;

/* The number of visible GPUs among the first `end` GPUs of the driver. */
static nvmlReturn_t count_shown(by_index *handle_of, unsigned int end, unsigned int *shown) {
  *shown = 0;
  for (unsigned int i = 0; i < end; i++) {
    nvmlDevice_t device;
    /* A GPU that cannot be opened is shown as the driver reports it. */
    *shown += handle_of(i, &device) != NVML_SUCCESS || nvml_view_shows(nvml_view(), device);
  }
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetCount_v2(unsigned int *count) {
  nvmlReturn_t result = driver.nvmlDeviceGetCount_v2(count);
  if (result != NVML_SUCCESS || !nvml_view()->hides) return result;
  return count_shown(driver.nvmlDeviceGetHandleByIndex_v2, *count, count);
}

nvmlReturn_t nvmlDeviceGetCount(unsigned int *count) {
  nvmlReturn_t result = driver.nvmlDeviceGetCount(count);
  if (result != NVML_SUCCESS || !nvml_view()->hides) return result;
  return count_shown(driver.nvmlDeviceGetHandleByIndex, *count, count);
}

static nvmlReturn_t nth_shown(by_index *handle_of, unsigned int index, nvmlDevice_t *device) {
  if (device == NULL || !nvml_view()->hides) return handle_of(index, device);
  for (unsigned int i = 0;; i++) {
    nvmlReturn_t result = handle_of(i, device);
    if (result == NVML_ERROR_INVALID_ARGUMENT || result == NVML_ERROR_UNINITIALIZED) return result;
    bool shown = result != NVML_SUCCESS || nvml_view_shows(nvml_view(), *device);
    if (shown && index-- == 0) return result;
  }
}

nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned int index, nvmlDevice_t *device) {
  return nth_shown(driver.nvmlDeviceGetHandleByIndex_v2, index, device);
}

nvmlReturn_t nvmlDeviceGetHandleByIndex(unsigned int index, nvmlDevice_t *device) {
  return nth_shown(driver.nvmlDeviceGetHandleByIndex, index, device);
}

nvmlReturn_t nvmlDeviceGetIndex(nvmlDevice_t device, unsigned int *index) {
  nvmlReturn_t result = driver.nvmlDeviceGetIndex(device, index);
  if (result != NVML_SUCCESS || !nvml_view()->hides) return result;
  return count_shown(driver.nvmlDeviceGetHandleByIndex_v2, *index, index);
}

static nvmlReturn_t if_shown(nvmlReturn_t result, nvmlDevice_t *device) {
  if (result != NVML_SUCCESS || nvml_view_shows(nvml_view(), *device)) return result;
  *device = NULL;
  return NVML_ERROR_NOT_FOUND;
}

/* An instance of another slice returns NVML_ERROR_NOT_FOUND, as an empty index does, so callers continue with the next
 * index. */
nvmlReturn_t nvmlDeviceGetMigDeviceHandleByIndex(nvmlDevice_t gpu, unsigned int index, nvmlDevice_t *mig) {
  return if_shown(driver.nvmlDeviceGetMigDeviceHandleByIndex(gpu, index, mig), mig);
}

nvmlReturn_t nvmlDeviceGetHandleByUUID(const char *uuid, nvmlDevice_t *device) {
  return if_shown(driver.nvmlDeviceGetHandleByUUID(uuid, device), device);
}

nvmlReturn_t nvmlDeviceGetHandleByUUIDV(const nvmlUUID_t *uuid, nvmlDevice_t *device) {
  return if_shown(driver.nvmlDeviceGetHandleByUUIDV(uuid, device), device);
}

nvmlReturn_t nvmlDeviceGetHandleByPciBusId_v2(const char *pci_bus_id, nvmlDevice_t *device) {
  return if_shown(driver.nvmlDeviceGetHandleByPciBusId_v2(pci_bus_id, device), device);
}

nvmlReturn_t nvmlDeviceGetHandleByPciBusId(const char *pci_bus_id, nvmlDevice_t *device) {
  return if_shown(driver.nvmlDeviceGetHandleByPciBusId(pci_bus_id, device), device);
}

nvmlReturn_t nvmlDeviceGetHandleBySerial(const char *serial, nvmlDevice_t *device) {
  return if_shown(driver.nvmlDeviceGetHandleBySerial(serial, device), device);
}
