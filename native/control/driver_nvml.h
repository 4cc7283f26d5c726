/* The driver's NVML, as libcuda-control.so uses it: opened only when it is needed, because initialising NVML takes tens
 * of milliseconds and opens descriptors. */
#ifndef VGPU_DRIVER_NVML_H
#define VGPU_DRIVER_NVML_H

#include "nvml_abi.h"
#include <stdbool.h>

#define DRIVER_NVML_EACH(DO)                                                                                           \
  DO(nvmlInit_v2)                                                                                                      \
  DO(nvmlShutdown)                                                                                                     \
  DO(nvmlDeviceGetHandleByUUID)                                                                                        \
  DO(nvmlDeviceGetComputeRunningProcesses_v3)                                                                          \
  DO(nvmlDeviceGetProcessUtilization)

struct driver_nvml {
#define DRIVER_NVML_MEMBER(symbol) __typeof__(&symbol) symbol;
  DRIVER_NVML_EACH(DRIVER_NVML_MEMBER)
};

/* False: NVML is missing, lacks a function, or cannot be initialised. The library stays loaded: other code of the
 * process may use it as well. */
bool driver_nvml_open(struct driver_nvml *nvml);
void driver_nvml_close(const struct driver_nvml *nvml);

#endif
