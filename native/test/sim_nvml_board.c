#include "sim_nvml.h"

int main(void) {
  TEST_BEGIN("NVML reports what monitoring tools require: brand, limits, display, bus, clocks and energy");
  nvmlBrandType_t brand;
  nvmlEnableState_t state;
  nvmlBusType_t bus;
  unsigned int number, least, most;
  unsigned long long reasons, supported, before, after;
  char version[NVML_DEVICE_VBIOS_VERSION_BUFFER_SIZE];

  sim_jump();
  NVML_OK(nvmlInit_v2());
  nvmlDevice_t device = sim_device(0);
  NVML_OK(nvmlDeviceGetBrand(device, &brand));
  CHECK_EQ(brand, NVML_BRAND_TESLA);
  NVML_OK(nvmlDeviceGetVbiosVersion(device, version, sizeof version));
  CHECK(version[0] != 0);
  CHECK_EQ(nvmlDeviceGetVbiosVersion(device, version, 4), NVML_ERROR_INSUFFICIENT_SIZE);
  NVML_OK(nvmlDeviceGetDisplayMode(device, &state));
  CHECK_EQ(state, NVML_FEATURE_DISABLED);
  NVML_OK(nvmlDeviceGetDisplayActive(device, &state));
  NVML_OK(nvmlDeviceGetNumFans(device, &number));
  CHECK_EQ(number, 0);
  NVML_OK(nvmlDeviceGetBusType(device, &bus));
  CHECK_EQ(bus, NVML_BUS_TYPE_PCIE);
  NVML_OK(nvmlDeviceGetMemoryBusWidth(device, &number));
  CHECK_EQ(number, 4096);

  NVML_OK(nvmlDeviceGetPowerManagementLimitConstraints(device, &least, &most));
  NVML_OK(nvmlDeviceGetPowerManagementLimit(device, &number));
  CHECK(least <= number && number <= most);
  NVML_OK(nvmlDeviceGetTemperatureThreshold(device, NVML_TEMPERATURE_THRESHOLD_SLOWDOWN, &least));
  NVML_OK(nvmlDeviceGetTemperatureThreshold(device, NVML_TEMPERATURE_THRESHOLD_SHUTDOWN, &most));
  CHECK(least < most);
  NVML_OK(nvmlDeviceGetClock(device, NVML_CLOCK_SM, NVML_CLOCK_ID_CURRENT, &number));
  CHECK(number > 0);

  /* On an idle GPU the clocks are low because it is idle, and nothing is transferred over the bus. */
  NVML_OK(nvmlDeviceGetCurrentClocksThrottleReasons(device, &reasons));
  CHECK_EQ(reasons, nvmlClocksEventReasonGpuIdle);
  NVML_OK(nvmlDeviceGetSupportedClocksThrottleReasons(device, &supported));
  CHECK((supported & reasons) == reasons);
  NVML_OK(nvmlDeviceGetPcieThroughput(device, NVML_PCIE_UTIL_RX_BYTES, &number));
  CHECK_EQ(number, 0);

  /* Kernels for two windows: the energy counter rises, and the GPU is no longer idle. */
  sim_begin();
  NVML_OK(nvmlDeviceGetTotalEnergyConsumption(device, &before));
  sim_launch(NULL, 80, 500000);
  OK(cuCtxSynchronize());
  NVML_OK(nvmlDeviceGetTotalEnergyConsumption(device, &after));
  CHECK(after > before);
  NVML_OK(nvmlDeviceGetCurrentClocksThrottleReasons(device, &reasons));
  CHECK_EQ(reasons, 0);
  return TEST_END;
}
