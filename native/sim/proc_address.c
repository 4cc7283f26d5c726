#include "driver.h"

#include <string.h>

/* The list has no prototypes for calls that are not simulated. */
#define CUDA_NAME(version, call, symbol, own) CUresult symbol(void);
#include "cuda_calls.def"

static const struct {
  int since;
  bool per_thread;
  const char *name;
  void *function;
} symbols[] = {
#define LEGACY false
#define PER_THREAD true
#define CUDA_FUNCTION(version, call, symbol, own, ...) {version, own, #call, (void *)(uintptr_t)symbol},
#define CUDA_NAME CUDA_FUNCTION
#include "cuda_calls.def"
};

/* The variant of a call that a program of the given CUDA version expects. NULL: none; `known` says whether the call
 * exists at all. */
static void *find(const char *name, int version, bool per_thread, int driver_version, bool *known) {
  void *found = NULL;
  int best = -1;
  bool best_own = false;
  *known = false;
  for (size_t i = 0; i < sizeof symbols / sizeof symbols[0]; i++) {
    if (strcmp(symbols[i].name, name) != 0 || symbols[i].since > driver_version) continue;
    *known = true;
    if (symbols[i].since > version || (symbols[i].per_thread && !per_thread)) continue;
    /* A per-thread variant has precedence, then the newest version. */
    if (symbols[i].per_thread < best_own || (symbols[i].per_thread == best_own && symbols[i].since <= best)) continue;
    found = symbols[i].function;
    best = symbols[i].since;
    best_own = symbols[i].per_thread;
  }
  return found;
}

static CUresult look_up(const char *name, void **function, int version, cuuint64_t flags,
                        CUdriverProcAddressQueryResult *status) {
  int driver_version;
  bool known;
  NEED(name != NULL && function != NULL);
  *function = NULL;
  NEED((flags & ~(cuuint64_t)(CU_GET_PROC_ADDRESS_LEGACY_STREAM | CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM)) == 0);
  TRY(cuDriverGetVersion(&driver_version));
  NEED(version <= driver_version);
  bool per_thread = (flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM) != 0;
  *function = find(name, version, per_thread, driver_version, &known);
  *status = *function != NULL ? CU_GET_PROC_ADDRESS_SUCCESS
            : known           ? CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT
                              : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
  return CUDA_SUCCESS;
}

SIM_API CUresult cuGetProcAddress_v2(const char *name, void **function, int version, cuuint64_t flags,
                                     CUdriverProcAddressQueryResult *status) {
  CUdriverProcAddressQueryResult found;
  TRY(look_up(name, function, version, flags, &found));
  if (status != NULL) *status = found;
  return CUDA_SUCCESS;
}

/* The first version has no status parameter and reports a missing call through its result. */
SIM_API CUresult cuGetProcAddress(const char *name, void **function, int version, cuuint64_t flags) {
  CUdriverProcAddressQueryResult found;
  TRY(look_up(name, function, version, flags, &found));
  return found == CU_GET_PROC_ADDRESS_SUCCESS ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}
