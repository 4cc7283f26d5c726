/*
 * Properties, sensors and settings of a board. Values are constant, and higher while a kernel ran in the last window.
 */
#include "nvml.h"

#include <string.h>

enum { IDLE_MW = 42000, WORKING_MW = 210000, LIMIT_MW = 300000, LEAST_LIMIT_MW = 150000 };

static bool is_working(uint32_t gpu) {
  const struct sim_usage *usage = &nvml.machine->boards[gpu].model.usage;
  return usage->window > 1 && usage->busy[(usage->window - 1) % SIM_WINDOWS] > 0;
}

SIM_API nvmlReturn_t nvmlDeviceGetTemperature(nvmlDevice_t device, nvmlTemperatureSensors_t sensor,
                                              unsigned int *degrees) {
  ENTER_GPU(device);
  NVML_NEED(degrees != NULL && sensor == NVML_TEMPERATURE_GPU);
  *degrees = is_working(gpu) ? 58 : 34;
  return NVML_SUCCESS;
}

SIM_API nvmlReturn_t nvmlDeviceGetPowerUsage(nvmlDevice_t device, unsigned int *milliwatts) {
  ENTER_GPU(device);
  NVML_NEED(milliwatts != NULL);
  *milliwatts = is_working(gpu) ? WORKING_MW : IDLE_MW;
  return NVML_SUCCESS;
}

SIM_API nvmlReturn_t nvmlDeviceGetEnforcedPowerLimit(nvmlDevice_t device, unsigned int *milliwatts) {
  ENTER_GPU(device);
  NVML_NEED(milliwatts != NULL);
  *milliwatts = LIMIT_MW;
  return NVML_SUCCESS;
}

SIM_API nvmlReturn_t nvmlDeviceGetPerformanceState(nvmlDevice_t device, nvmlPstates_t *state) {
  ENTER_GPU(device);
  NVML_NEED(state != NULL);
  *state = NVML_PSTATE_0;
  return NVML_SUCCESS;
}

static nvmlReturn_t clock_of(nvmlClockType_t type, unsigned int *mhz) {
  NVML_NEED(mhz != NULL && (unsigned int)type <= NVML_CLOCK_VIDEO);
  *mhz = type == NVML_CLOCK_MEM ? 877 : 1530;
  return NVML_SUCCESS;
}

SIM_API nvmlReturn_t nvmlDeviceGetClockInfo(nvmlDevice_t device, nvmlClockType_t type, unsigned int *mhz) {
  ENTER_GPU(device);
  return clock_of(type, mhz);
}

SIM_API nvmlReturn_t nvmlDeviceGetMaxClockInfo(nvmlDevice_t device, nvmlClockType_t type, unsigned int *mhz) {
  ENTER_GPU(device);
  return clock_of(type, mhz);
}

SIM_API nvmlReturn_t nvmlDeviceGetApplicationsClock(nvmlDevice_t device, nvmlClockType_t type, unsigned int *mhz) {
  ENTER_GPU(device);
  return clock_of(type, mhz);
}

SIM_API nvmlReturn_t nvmlDeviceGetDefaultApplicationsClock(nvmlDevice_t device, nvmlClockType_t type,
                                                           unsigned int *mhz) {
  ENTER_GPU(device);
  return clock_of(type, mhz);
}

SIM_API nvmlReturn_t nvmlDeviceGetClock(nvmlDevice_t device, nvmlClockType_t type, nvmlClockId_t id,
                                        unsigned int *mhz) {
  ENTER_GPU(device);
  NVML_NEED((unsigned int)id <= NVML_CLOCK_ID_CUSTOMER_BOOST_MAX);
  return clock_of(type, mhz);
}

SIM_API nvmlReturn_t nvmlDeviceGetBrand(nvmlDevice_t device, nvmlBrandType_t *brand) {
  ENTER_GPU(device);
  NVML_NEED(brand != NULL);
  static const struct {
    const char *begin;
    nvmlBrandType_t brand;
  } brands[] = {{"Tesla", NVML_BRAND_TESLA},
                {"Quadro", NVML_BRAND_QUADRO},
                {"NVIDIA GeForce", NVML_BRAND_GEFORCE},
                {"NVIDIA RTX", NVML_BRAND_NVIDIA_RTX},
                {"NVIDIA", NVML_BRAND_NVIDIA}};
  *brand = NVML_BRAND_UNKNOWN;
  for (size_t i = sizeof brands / sizeof brands[0]; i-- > 0;)
    if (strncmp(nvml_gpu(gpu)->model, brands[i].begin, strlen(brands[i].begin)) == 0) *brand = brands[i].brand;
  return NVML_SUCCESS;
}

SIM_API nvmlReturn_t nvmlDeviceGetVbiosVersion(nvmlDevice_t device, char *version, unsigned int length) {
  ENTER_GPU(device);
  return nvml_copy_text(version, length, "88.00.43.00.03");
}

/* Pages are not migrated or translated between host and GPU. */
SIM_API nvmlReturn_t nvmlDeviceGetAddressingMode(nvmlDevice_t device, nvmlDeviceAddressingMode_t *mode) {
  ENTER_GPU(device);
  NVML_NEED(mode != NULL);
  if (mode->version != NVML_STRUCT_VERSION(DeviceAddressingMode, 1)) return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
  mode->value = 0;
  return NVML_SUCCESS;
}

SIM_API nvmlReturn_t nvmlDeviceGetTemperatureThreshold(nvmlDevice_t device, nvmlTemperatureThresholds_t threshold,
                                                       unsigned int *degrees) {
  static const unsigned int thresholds[] = {[NVML_TEMPERATURE_THRESHOLD_SHUTDOWN] = 90,
                                            [NVML_TEMPERATURE_THRESHOLD_SLOWDOWN] = 87,
                                            [NVML_TEMPERATURE_THRESHOLD_MEM_MAX] = 85,
                                            [NVML_TEMPERATURE_THRESHOLD_GPU_MAX] = 83};
  ENTER_GPU(device);
  NVML_NEED(degrees != NULL);
  if ((unsigned int)threshold > NVML_TEMPERATURE_THRESHOLD_GPU_MAX) return NVML_ERROR_NOT_SUPPORTED;
  *degrees = thresholds[threshold];
  return NVML_SUCCESS;
}

SIM_API nvmlReturn_t nvmlDeviceGetPowerManagementLimitConstraints(nvmlDevice_t device, unsigned int *least,
                                                                  unsigned int *most) {
  ENTER_GPU(device);
  NVML_NEED(least != NULL && most != NULL);
  *least = LEAST_LIMIT_MW;
  *most = LIMIT_MW;
  return NVML_SUCCESS;
}

/* Since the creation of the machine, in millijoules. */
SIM_API nvmlReturn_t nvmlDeviceGetTotalEnergyConsumption(nvmlDevice_t device, unsigned long long *energy) {
  ENTER_GPU(device);
  NVML_NEED(energy != NULL);
  const struct sim_usage *usage = &nvml.machine->boards[gpu].model.usage;
  *energy = usage->window * SIM_WINDOW_NS / 1000000 * IDLE_MW / 1000 +
            usage->total_busy_ns / 1000000 * (WORKING_MW - IDLE_MW) / 1000;
  return NVML_SUCCESS;
}

static nvmlReturn_t reasons_now(uint32_t gpu, unsigned long long *reasons) {
  NVML_NEED(reasons != NULL);
  *reasons = is_working(gpu) ? 0 : nvmlClocksEventReasonGpuIdle;
  return NVML_SUCCESS;
}

SIM_API nvmlReturn_t nvmlDeviceGetCurrentClocksEventReasons(nvmlDevice_t device, unsigned long long *reasons) {
  ENTER_GPU(device);
  return reasons_now(gpu, reasons);
}

SIM_API nvmlReturn_t nvmlDeviceGetCurrentClocksThrottleReasons(nvmlDevice_t device, unsigned long long *reasons) {
  ENTER_GPU(device);
  return reasons_now(gpu, reasons);
}

/* From the copy time in the last window; both directions are equal. */
SIM_API nvmlReturn_t nvmlDeviceGetPcieThroughput(nvmlDevice_t device, nvmlPcieUtilCounter_t counter,
                                                 unsigned int *kilobytes) {
  ENTER_GPU(device);
  NVML_NEED(kilobytes != NULL && (unsigned int)counter <= NVML_PCIE_UTIL_RX_BYTES);
  const struct sim_usage *usage = &nvml.machine->boards[gpu].model.usage;
  unsigned int percent = usage->window > 1 ? usage->copy[(usage->window - 1) % SIM_WINDOWS] : 0;
  *kilobytes = nvml.machine->node.copy_bytes_per_us / 100 * 1000 * percent;
  return NVML_SUCCESS;
}

#define CONSTANT(name, type, value)                                                                                    \
  SIM_API nvmlReturn_t name(nvmlDevice_t device, type *result) {                                                       \
    ENTER_GPU(device);                                                                                                 \
    NVML_NEED(result != NULL);                                                                                         \
    *result = value;                                                                                                   \
    return NVML_SUCCESS;                                                                                               \
  }

CONSTANT(nvmlDeviceGetCurrPcieLinkGeneration, unsigned int, 3)
CONSTANT(nvmlDeviceGetMaxPcieLinkGeneration, unsigned int, 3)
CONSTANT(nvmlDeviceGetGpuMaxPcieLinkGeneration, unsigned int, 3)
CONSTANT(nvmlDeviceGetCurrPcieLinkWidth, unsigned int, 16)
CONSTANT(nvmlDeviceGetMaxPcieLinkWidth, unsigned int, 16)
CONSTANT(nvmlDeviceGetPcieReplayCounter, unsigned int, 0)
CONSTANT(nvmlDeviceGetBusType, nvmlBusType_t, NVML_BUS_TYPE_PCIE)
CONSTANT(nvmlDeviceGetMemoryBusWidth, unsigned int, 4096)
/* Server GPUs have no fans and no display. */
CONSTANT(nvmlDeviceGetNumFans, unsigned int, 0)
CONSTANT(nvmlDeviceGetDisplayMode, nvmlEnableState_t, NVML_FEATURE_DISABLED)
CONSTANT(nvmlDeviceGetDisplayActive, nvmlEnableState_t, NVML_FEATURE_DISABLED)
CONSTANT(nvmlDeviceGetVirtualizationMode, nvmlGpuVirtualizationMode_t, NVML_GPU_VIRTUALIZATION_MODE_NONE)
CONSTANT(nvmlDeviceGetPowerState, nvmlPstates_t, NVML_PSTATE_0)
CONSTANT(nvmlDeviceGetPowerManagementMode, nvmlEnableState_t, NVML_FEATURE_ENABLED)
CONSTANT(nvmlDeviceGetPowerManagementLimit, unsigned int, LIMIT_MW)
CONSTANT(nvmlDeviceGetPowerManagementDefaultLimit, unsigned int, LIMIT_MW)
#define REASONS (nvmlClocksEventReasonGpuIdle | nvmlClocksEventReasonSwPowerCap | nvmlClocksThrottleReasonHwSlowdown)
CONSTANT(nvmlDeviceGetSupportedClocksEventReasons, unsigned long long, REASONS)
CONSTANT(nvmlDeviceGetSupportedClocksThrottleReasons, unsigned long long, REASONS)
