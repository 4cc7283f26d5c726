#define _GNU_SOURCE
#include "driver.h"
#include "symbol_version.h"
#include <dlfcn.h>

#define ORIGIN "libcuda-origin.so.1"

struct driver driver;
static void *origin;

/* Called through pointers of other function types. It ignores the arguments, which is safe because the caller cleans up
 * the stack on x86-64 and aarch64. */
CUresult driver_missing(void) {
  return CUDA_ERROR_NOT_FOUND;
}

void *driver_find(const char *name) {
  void *function = origin == NULL ? NULL : dlsym(origin, name);
  return function == NULL ? (void *)driver_missing : function;
}

/* Runs before any code of the program can call a hook, so hooks need no check whether the table is filled. */
__attribute__((constructor(101))) static void resolve(void) {
  origin = dlopen(ORIGIN, RTLD_LAZY | RTLD_NOLOAD);
#define CUDA_HOOK(since, name, symbol, ...) driver.symbol = (__typeof__(&symbol))driver_find(#symbol);
#define CUDA_CALL CUDA_HOOK
#include "cuda_calls.def"
}

bool driver_found(void) {
  return origin != NULL && driver_has(cuInit);
}

void *driver_look_up(const char *name, int version, cuuint64_t flags) {
  void *function = NULL;
  CUdriverProcAddressQueryResult status;
  if (driver_has(cuGetProcAddress_v2)) {
    if (driver.cuGetProcAddress_v2(name, &function, version, flags, &status) != CUDA_SUCCESS) return NULL;
  } else if (driver.cuGetProcAddress(name, &function, version, flags) != CUDA_SUCCESS) {
    return NULL;
  }
  return function;
}
