/*
 * Context creation and destruction: a context uses memory itself, and destroying it frees all memory allocated in it.
 * Handles of destroyed contexts and streams leave the cache of their devices.
 */
#include "contexts.h"
#include "control.h"
#include "devices.h"
#include "driver.h"
#include "flight.h"
#include "gate.h"
#include "memory.h"

#define CREATES(name, parameters, arguments)                                                                           \
  CUresult name parameters {                                                                                           \
    struct contexts_reservation reservation;                                                                           \
    if (!control_enforces() || context == NULL) return driver.name arguments;                                          \
    if (!contexts_reserve(&reservation, devices_index(device))) return CUDA_ERROR_OUT_OF_MEMORY;                       \
    CUresult result = driver.name arguments;                                                                           \
    if (contexts_commit(&reservation, result == CUDA_SUCCESS ? *context : NULL)) return result;                        \
    driver.cuCtxDestroy_v2(*context);                                                                                  \
    return CUDA_ERROR_OUT_OF_MEMORY;                                                                                   \
  }

CREATES(cuCtxCreate, (CUcontext * context, unsigned int flags, CUdevice device), (context, flags, device))
CREATES(cuCtxCreate_v2, (CUcontext * context, unsigned int flags, CUdevice device), (context, flags, device))
CREATES(cuCtxCreate_v3,
        (CUcontext * context, CUexecAffinityParam *affinities, int count, unsigned int flags, CUdevice device),
        (context, affinities, count, flags, device))
CREATES(cuCtxCreate_v4, (CUcontext * context, CUctxCreateParams *creation, unsigned int flags, CUdevice device),
        (context, creation, flags, device))
CREATES(cuGLCtxCreate, (CUcontext * context, unsigned int flags, CUdevice device), (context, flags, device))
CREATES(cuGLCtxCreate_v2, (CUcontext * context, unsigned int flags, CUdevice device), (context, flags, device))
CREATES(cuVDPAUCtxCreate, (CUcontext * context, unsigned int flags, CUdevice device, uint32_t display, void *lookup),
        (context, flags, device, display, lookup))
CREATES(cuVDPAUCtxCreate_v2, (CUcontext * context, unsigned int flags, CUdevice device, uint32_t display, void *lookup),
        (context, flags, device, display, lookup))

static CUresult ended(CUresult result, CUcontext context) {
  if (result == CUDA_SUCCESS && context != NULL && control_enforces()) {
    memory_drop_context(context);
    devices_forget_context(context);
  }
  return result;
}

static CUcontext current(void) {
  CUcontext context = NULL;
  driver.cuCtxGetCurrent(&context);
  return context;
}

CUresult cuCtxDestroy_v2(CUcontext context) {
  if (control_enforces()) gate_drop_context(context);
  return ended(driver.cuCtxDestroy_v2(context), context);
}

CUresult cuCtxDestroy(CUcontext context) {
  if (control_enforces()) gate_drop_context(context);
  return ended(driver.cuCtxDestroy(context), context);
}

/* Drops one attachment. The context ends with the last one and is then no longer current. */
CUresult cuCtxDetach(CUcontext context) {
  CUresult result = driver.cuCtxDetach(context);
  if (context == current()) return result;
  if (control_enforces()) gate_drop_context(context);
  return ended(result, context);
}

/* The primary context of a device; NULL if it is inactive. */
static CUcontext primary(CUdevice device) {
  unsigned int flags;
  int active = 0;
  CUcontext context = NULL;
  if (driver.cuDevicePrimaryCtxGetState(device, &flags, &active) != CUDA_SUCCESS || !active) return NULL;
  if (driver.cuDevicePrimaryCtxRetain(&context, device) != CUDA_SUCCESS) return NULL;
  driver.cuDevicePrimaryCtxRelease(device);
  return context;
}

/* Only the call that activates the primary context allocates memory. */
CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device) {
  struct contexts_reservation reservation;
  if (!control_enforces() || context == NULL || primary(device) != NULL)
    return driver.cuDevicePrimaryCtxRetain(context, device);
  if (!contexts_reserve(&reservation, devices_index(device))) return CUDA_ERROR_OUT_OF_MEMORY;
  CUresult result = driver.cuDevicePrimaryCtxRetain(context, device);
  if (contexts_commit(&reservation, result == CUDA_SUCCESS ? *context : NULL)) return result;
  driver.cuDevicePrimaryCtxRelease(device);
  return CUDA_ERROR_OUT_OF_MEMORY;
}

static CUcontext before_primary_may_end(CUdevice device) {
  CUcontext context = control_enforces() ? primary(device) : NULL;
  if (context != NULL) gate_drop_context(context);
  return context;
}

/* The release destroys the context only if no other user retains it. */
static CUresult released(CUresult result, CUdevice device, CUcontext context) {
  return primary(device) == NULL ? ended(result, context) : result;
}

CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device) {
  CUcontext context = before_primary_may_end(device);
  return released(driver.cuDevicePrimaryCtxRelease_v2(device), device, context);
}

CUresult cuDevicePrimaryCtxRelease(CUdevice device) {
  CUcontext context = before_primary_may_end(device);
  return released(driver.cuDevicePrimaryCtxRelease(device), device, context);
}

CUresult cuDevicePrimaryCtxReset_v2(CUdevice device) {
  CUcontext context = before_primary_may_end(device);
  return ended(driver.cuDevicePrimaryCtxReset_v2(device), context);
}

CUresult cuDevicePrimaryCtxReset(CUdevice device) {
  CUcontext context = before_primary_may_end(device);
  return ended(driver.cuDevicePrimaryCtxReset(device), context);
}

/* A green context keeps the primary context alive and activates it if necessary. */
CUresult cuGreenCtxCreate(CUgreenCtx *green, CUdevResourceDesc description, CUdevice device, unsigned int flags) {
  struct contexts_reservation reservation;
  if (!control_enforces() || green == NULL || primary(device) != NULL)
    return driver.cuGreenCtxCreate(green, description, device, flags);
  if (!contexts_reserve(&reservation, devices_index(device))) return CUDA_ERROR_OUT_OF_MEMORY;
  CUresult result = driver.cuGreenCtxCreate(green, description, device, flags);
  if (contexts_commit(&reservation, result == CUDA_SUCCESS ? primary(device) : NULL)) return result;
  driver.cuGreenCtxDestroy(*green);
  return CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult cuGreenCtxDestroy(CUgreenCtx green) {
  CUcontext context = NULL;
  CUdevice device = 0;
  int count = 0;
  if (!control_enforces()) return driver.cuGreenCtxDestroy(green);
  /*
   * The driver does not report the device of a green context: it is the one whose primary context is gone afterwards.
   */
  CUcontext before[VGPU_MAX_DEVICES] = {NULL};
  driver.cuDeviceGetCount(&count);
  for (device = 0; device < count && device < (int)VGPU_MAX_DEVICES; device++)
    before[device] = primary(device);
  devices_forget_streams();
  CUresult result = driver.cuGreenCtxDestroy(green);
  for (device = 0; device < count && device < (int)VGPU_MAX_DEVICES; device++) {
    context = before[device];
    if (context == NULL || primary(device) != NULL) continue;
    gate_drop_context(context);
    ended(result, context);
  }
  return result;
}

/* Before the driver call: another thread may get the same handle for a stream of another device. */
CUresult cuStreamDestroy_v2(CUstream stream) {
  devices_forget_stream(stream);
  flight_drop_stream(stream);
  return driver.cuStreamDestroy_v2(stream);
}

CUresult cuStreamDestroy(CUstream stream) {
  devices_forget_stream(stream);
  flight_drop_stream(stream);
  return driver.cuStreamDestroy(stream);
}
