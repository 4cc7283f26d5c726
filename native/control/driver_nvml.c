#define _GNU_SOURCE
#include "driver_nvml.h"
#include "symbol_version.h"
#include <dlfcn.h>
#include <stddef.h>

#define NVML "libnvidia-ml-origin.so.1"

static bool find(struct driver_nvml *nvml) {
  void *library = dlopen(NVML, RTLD_NOW | RTLD_LOCAL);
  if (library == NULL) return false;
  bool good = true;
#define FIND(symbol) good &= (nvml->symbol = (__typeof__(&symbol))dlsym(library, #symbol)) != NULL;
  DRIVER_NVML_EACH(FIND)
  return good;
}

bool driver_nvml_open(struct driver_nvml *nvml) {
  return find(nvml) && nvml->nvmlInit_v2() == NVML_SUCCESS;
}

void driver_nvml_close(const struct driver_nvml *nvml) {
  nvml->nvmlShutdown();
}
