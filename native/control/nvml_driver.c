#define _GNU_SOURCE
#include "nvml_driver.h"
#include "symbol_version.h"
#include <dlfcn.h>
#include <stddef.h>

#define ORIGIN "libnvidia-ml-origin.so.1"

struct nvml_driver driver;
static void *origin;

static nvmlReturn_t missing(void) {
  return NVML_ERROR_FUNCTION_NOT_FOUND;
}

void *nvml_driver_find(const char *name) {
  void *function = origin == NULL ? NULL : dlsym(origin, name);
  return function == NULL ? (void *)missing : function;
}

__attribute__((constructor)) static void resolve(void) {
  origin = dlopen(ORIGIN, RTLD_LAZY | RTLD_NOLOAD);
#define NVML_HOOK(type, symbol, parameters) driver.symbol = (__typeof__(&symbol))nvml_driver_find(#symbol);
#define NVML_CALL NVML_HOOK
#include "nvml_calls.def"
}
