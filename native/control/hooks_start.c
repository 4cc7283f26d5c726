/* cuInit and the lookup of functions. */
#include "control.h"
#include "devices.h"
#include "driver.h"
#include "gate.h"
#include "proc_address.h"
#include "visible.h"

static void *recognised(void) {
  void *function = driver_look_up("cuLaunchKernel", 13000, LEGACY);
  return function == NULL ? NULL : proc_address_hook("cuLaunchKernel", function);
}

CUresult cuInit(unsigned int flags) {
  /* Fail closed: without enforceable limits the program would get the whole GPU. */
  if (!control_start()) return CUDA_ERROR_NOT_INITIALIZED;
  bool hides = visible_begin();
  CUresult result = driver.cuInit(flags);
  if (hides) visible_end(result == CUDA_SUCCESS);
  if (result != CUDA_SUCCESS || !control_enforces()) return result;
  devices_match();
  proc_address_forget();
  gate_refresh();
  if (recognised() == (void *)cuLaunchKernel) control_note(VGPU_TEST_LOOKUP_KNOWN);
  return result;
}

CUresult cuGetProcAddress_v2(const char *name, void **function, int version, cuuint64_t flags,
                             CUdriverProcAddressQueryResult *status) {
  CUresult result = driver.cuGetProcAddress_v2(name, function, version, flags, status);
  if (result == CUDA_SUCCESS && function != NULL) *function = proc_address_hook(name, *function);
  return result;
}

CUresult cuGetProcAddress(const char *name, void **function, int version, cuuint64_t flags) {
  CUresult result = driver.cuGetProcAddress(name, function, version, flags);
  if (result == CUDA_SUCCESS && function != NULL) *function = proc_address_hook(name, *function);
  return result;
}
