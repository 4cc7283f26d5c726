/* The functions of the real NVML, resolved once when the library is loaded. A missing function returns
 * NVML_ERROR_FUNCTION_NOT_FOUND. */
#ifndef VGPU_NVML_DRIVER_H
#define VGPU_NVML_DRIVER_H

#include "nvml_abi.h"

#define NVML_HOOK(type, symbol, parameters) extern __typeof__(symbol) symbol __attribute__((visibility("default")));
#include "nvml_calls.def"

struct nvml_driver {
#define NVML_HOOK(type, symbol, parameters) __typeof__(symbol) *symbol;
#define NVML_CALL NVML_HOOK
#include "nvml_calls.def"
};

/* The driver's function of that name, or a function that returns NVML_ERROR_FUNCTION_NOT_FOUND. */
void *nvml_driver_find(const char *name);

extern struct nvml_driver driver __attribute__((visibility("hidden")));

#endif
