/* Utilisation of the container's own processes instead of the whole GPU. */
#include "nvml_driver.h"
#include "nvml_view.h"
#include "os.h"
#include <stddef.h>

#define MOST_PROCESSES 512u
/* How far back samples are read: further than the driver's window, which may have ended a sixth of a second ago. */
#define HISTORY_US 1000000ull

/* Moves the samples of the container's processes to the front and returns their number. */
static unsigned int keep_own(nvmlProcessUtilizationSample_t *samples, unsigned int count) {
  const struct nvml_view *view = nvml_view();
  unsigned int own = 0;
  for (unsigned int i = 0; i < count; i++)
    if (nvml_view_owns(view, samples[i].pid)) samples[own++] = samples[i];
  return own;
}

nvmlReturn_t nvmlDeviceGetProcessUtilization(nvmlDevice_t device, nvmlProcessUtilizationSample_t *samples,
                                             unsigned int *count, unsigned long long since) {
  if (nvml_view()->limits == NULL || count == NULL)
    return driver.nvmlDeviceGetProcessUtilization(device, samples, count, since);
  nvmlProcessUtilizationSample_t all[MOST_PROCESSES];
  unsigned int listed = MOST_PROCESSES, room = samples == NULL ? 0 : *count;
  nvmlReturn_t result = driver.nvmlDeviceGetProcessUtilization(device, all, &listed, since);
  if (result != NVML_SUCCESS) return result;
  unsigned int own = keep_own(all, listed);
  *count = own;
  if (own == 0) return NVML_ERROR_NOT_FOUND;
  if (own > room) return NVML_ERROR_INSUFFICIENT_SIZE;
  for (unsigned int i = 0; i < own; i++)
    samples[i] = all[i];
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetProcessesUtilizationInfo(nvmlDevice_t device, nvmlProcessesUtilizationInfo_t *info) {
  nvmlReturn_t result = driver.nvmlDeviceGetProcessesUtilizationInfo(device, info);
  const struct nvml_view *view = nvml_view();
  if (result != NVML_SUCCESS || view->limits == NULL || info == NULL || info->procUtilArray == NULL) return result;
  unsigned int own = 0;
  for (unsigned int i = 0; i < info->processSamplesCount; i++)
    if (nvml_view_owns(view, info->procUtilArray[i].pid)) info->procUtilArray[own++] = info->procUtilArray[i];
  info->processSamplesCount = own;
  return own > 0 ? NVML_SUCCESS : NVML_ERROR_NOT_FOUND;
}

static unsigned int at_most_100(unsigned int percent) {
  return percent < 100 ? percent : 100;
}

/* The sum of the newest sample of each process of the container. Samples are stamped with the wall clock. */
static nvmlReturn_t own_rates(nvmlDevice_t device, nvmlUtilization_t *rates) {
  nvmlProcessUtilizationSample_t all[MOST_PROCESSES];
  unsigned int listed = MOST_PROCESSES;
  nvmlReturn_t result = driver.nvmlDeviceGetProcessUtilization(device, all, &listed, os_wall_clock_us() - HISTORY_US);
  *rates = (nvmlUtilization_t){.gpu = 0};
  if (result == NVML_ERROR_NOT_FOUND) return NVML_SUCCESS;
  if (result != NVML_SUCCESS) return result;
  unsigned int own = keep_own(all, listed);
  for (unsigned int i = 0; i < own; i++) {
    bool newest = true;
    for (unsigned int j = 0; j < own; j++)
      newest &= all[j].pid != all[i].pid || all[j].timeStamp <= all[i].timeStamp;
    if (!newest) continue;
    rates->gpu = at_most_100(rates->gpu + all[i].smUtil);
    rates->memory = at_most_100(rates->memory + all[i].memUtil);
  }
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetUtilizationRates(nvmlDevice_t device, nvmlUtilization_t *rates) {
  nvmlReturn_t result = driver.nvmlDeviceGetUtilizationRates(device, rates);
  if (result != NVML_SUCCESS || nvml_view()->limits == NULL) return result;
  return own_rates(device, rates);
}

/* Refuses utilisation samples of the whole GPU. Power and clocks belong to the GPU and are shown. */
nvmlReturn_t nvmlDeviceGetSamples(nvmlDevice_t device, nvmlSamplingType_t type, unsigned long long since,
                                  nvmlValueType_t *value, unsigned int *count, nvmlSample_t *samples) {
  bool whole = type >= NVML_GPU_UTILIZATION_SAMPLES && type <= NVML_DEC_UTILIZATION_SAMPLES;
  if (whole && nvml_view()->limits != NULL) return NVML_ERROR_NO_PERMISSION;
  return driver.nvmlDeviceGetSamples(device, type, since, value, count, samples);
}
