#include "nvml.h"

#include "clock.h"
#include "model.h"

enum { ENCODER_PERIOD_US = 167000 };

/* Reports the last complete window; zero before the first one is complete. */
SIM_API nvmlReturn_t nvmlDeviceGetUtilizationRates(nvmlDevice_t device, nvmlUtilization_t *rates) {
  ENTER_GPU(device);
  if (nvml_gpu(gpu)->mig) return NVML_ERROR_NOT_SUPPORTED;
  NVML_NEED(rates != NULL);
  sim_model_enter(nvml.machine, gpu);
  const struct sim_usage *usage = &nvml.machine->boards[gpu].model.usage;
  uint64_t last = usage->window - 1;
  rates->gpu = last == 0 ? 0 : usage->busy[last % SIM_WINDOWS];
  rates->memory = last == 0 ? 0 : usage->copy[last % SIM_WINDOWS];
  sim_model_leave(nvml.machine, gpu);
  return NVML_SUCCESS;
}

SIM_API nvmlReturn_t nvmlDeviceGetEncoderUtilization(nvmlDevice_t device, unsigned int *percent,
                                                     unsigned int *period_us) {
  ENTER_GPU(device);
  NVML_NEED(percent != NULL && period_us != NULL);
  *percent = 0;
  *period_us = ENCODER_PERIOD_US;
  return NVML_SUCCESS;
}

SIM_API nvmlReturn_t nvmlDeviceGetDecoderUtilization(nvmlDevice_t device, unsigned int *percent,
                                                     unsigned int *period_us) {
  ENTER_GPU(device);
  NVML_NEED(percent != NULL && period_us != NULL);
  *percent = 0;
  *period_us = ENCODER_PERIOD_US;
  return NVML_SUCCESS;
}

static nvmlReturn_t sample(const struct sim_usage *usage, nvmlSamplingType_t type, uint64_t window,
                           nvmlSample_t *sample_out) {
  unsigned int value;
  switch (type) {
  case NVML_GPU_UTILIZATION_SAMPLES:
    value = usage->busy[window % SIM_WINDOWS];
    break;
  case NVML_MEMORY_UTILIZATION_SAMPLES:
    value = usage->copy[window % SIM_WINDOWS];
    break;
  case NVML_ENC_UTILIZATION_SAMPLES:
  case NVML_DEC_UTILIZATION_SAMPLES:
    value = 0;
    break;
  default:
    return NVML_ERROR_NOT_SUPPORTED;
  }
  sample_out->timeStamp = sim_stamp_us(nvml.machine, usage->origin_ns + window * (uint64_t)SIM_WINDOW_NS);
  sample_out->sampleValue.ullVal = 0;
  sample_out->sampleValue.uiVal = value;
  return NVML_SUCCESS;
}

SIM_API nvmlReturn_t nvmlDeviceGetSamples(nvmlDevice_t device, nvmlSamplingType_t type, unsigned long long last_seen,
                                          nvmlValueType_t *value_type, unsigned int *count, nvmlSample_t *samples) {
  nvmlSample_t one;
  nvmlReturn_t result = NVML_SUCCESS;
  ENTER_GPU(device);
  if (nvml_gpu(gpu)->mig) return NVML_ERROR_NOT_SUPPORTED;
  NVML_NEED(count != NULL && value_type != NULL);
  *value_type = NVML_VALUE_TYPE_UNSIGNED_INT;
  if (samples == NULL) {
    *count = SIM_WINDOWS;
    return NVML_SUCCESS;
  }
  unsigned int found = 0;
  sim_model_enter(nvml.machine, gpu);
  const struct sim_usage *usage = &nvml.machine->boards[gpu].model.usage;
  uint64_t first = usage->window > SIM_WINDOWS ? usage->window - SIM_WINDOWS + 1 : 1;
  for (uint64_t window = first; window < usage->window && found < *count && result == NVML_SUCCESS; window++) {
    result = sample(usage, type, window, &one);
    if (result == NVML_SUCCESS && one.timeStamp > last_seen) samples[found++] = one;
  }
  sim_model_leave(nvml.machine, gpu);
  NVML_TRY(result);
  *count = found;
  return found == 0 ? NVML_ERROR_NOT_FOUND : NVML_SUCCESS;
}

static nvmlReturn_t field(uint32_t gpu, nvmlFieldValue_t *value) {
  switch (value->fieldId) {
  case NVML_FI_DEV_NVLINK_LINK_COUNT: {
    nvmlEnableState_t state;
    unsigned int links = 0;
    while (links < NVML_NVLINK_MAX_LINKS && nvmlDeviceGetNvLinkState(nvml_handle(gpu), links, &state) == NVML_SUCCESS)
      links++;
    value->valueType = NVML_VALUE_TYPE_UNSIGNED_INT;
    value->value.uiVal = links;
    return NVML_SUCCESS;
  }
  case NVML_FI_DEV_TOTAL_ENERGY_CONSUMPTION:
    /* In millijoules: 210 W while kernels run. */
    value->valueType = NVML_VALUE_TYPE_UNSIGNED_LONG_LONG;
    value->value.ullVal = nvml.machine->boards[gpu].model.usage.total_busy_ns / 1000 * 210 / 1000;
    return NVML_SUCCESS;
  default:
    return NVML_ERROR_NOT_SUPPORTED;
  }
}

SIM_API nvmlReturn_t nvmlDeviceGetFieldValues(nvmlDevice_t device, int count, nvmlFieldValue_t *values) {
  ENTER_GPU(device);
  NVML_NEED(count > 0 && values != NULL);
  for (int i = 0; i < count; i++) {
    values[i].timestamp = (long long)sim_stamp_us(nvml.machine, sim_now(nvml.machine));
    values[i].latencyUsec = 0;
    values[i].nvmlReturn = field(gpu, &values[i]);
  }
  return NVML_SUCCESS;
}
