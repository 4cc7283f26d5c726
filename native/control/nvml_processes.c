/* Process lists contain only processes of the container. Neither the number nor the pids of other processes on the GPU
 * are visible. */
#include "nvml_driver.h"
#include "nvml_view.h"
#include <stddef.h>

#define MOST_PROCESSES 512u

/* Entries beyond the buffer are counted but not written, as in the driver. */
#define LISTS(symbol, type)                                                                                            \
  nvmlReturn_t symbol(nvmlDevice_t device, unsigned int *count, type *processes) {                                     \
    const struct nvml_view *view = nvml_view();                                                                        \
    if (view->limits == NULL || count == NULL) return driver.symbol(device, count, processes);                         \
    type all[MOST_PROCESSES];                                                                                          \
    unsigned int listed = MOST_PROCESSES, own = 0, room = processes == NULL ? 0 : *count;                              \
    nvmlReturn_t result = driver.symbol(device, &listed, all);                                                         \
    if (result != NVML_SUCCESS) return result;                                                                         \
    for (unsigned int i = 0; i < listed; i++) {                                                                        \
      if (!nvml_view_owns(view, all[i].pid)) continue;                                                                 \
      if (own < room) processes[own] = all[i];                                                                         \
      own++;                                                                                                           \
    }                                                                                                                  \
    *count = own;                                                                                                      \
    return own > room ? NVML_ERROR_INSUFFICIENT_SIZE : NVML_SUCCESS;                                                   \
  }

LISTS(nvmlDeviceGetComputeRunningProcesses, nvmlProcessInfo_v1_t)
LISTS(nvmlDeviceGetComputeRunningProcesses_v2, nvmlProcessInfo_v2_t)
LISTS(nvmlDeviceGetComputeRunningProcesses_v3, nvmlProcessInfo_t)
LISTS(nvmlDeviceGetGraphicsRunningProcesses, nvmlProcessInfo_v1_t)
LISTS(nvmlDeviceGetGraphicsRunningProcesses_v2, nvmlProcessInfo_v2_t)
LISTS(nvmlDeviceGetGraphicsRunningProcesses_v3, nvmlProcessInfo_t)
LISTS(nvmlDeviceGetMPSComputeRunningProcesses, nvmlProcessInfo_v1_t)
LISTS(nvmlDeviceGetMPSComputeRunningProcesses_v2, nvmlProcessInfo_v2_t)
LISTS(nvmlDeviceGetMPSComputeRunningProcesses_v3, nvmlProcessInfo_t)

nvmlReturn_t nvmlDeviceGetRunningProcessDetailList(nvmlDevice_t device, nvmlProcessDetailList_t *list) {
  nvmlReturn_t result = driver.nvmlDeviceGetRunningProcessDetailList(device, list);
  const struct nvml_view *view = nvml_view();
  if (result != NVML_SUCCESS || view->limits == NULL || list == NULL || list->procArray == NULL) return result;
  unsigned int own = 0;
  for (unsigned int i = 0; i < list->numProcArrayEntries; i++)
    if (nvml_view_owns(view, list->procArray[i].pid)) list->procArray[own++] = list->procArray[i];
  list->numProcArrayEntries = own;
  return result;
}
