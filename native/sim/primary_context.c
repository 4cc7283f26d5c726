#include "context.h"

/* The primary context of each device, shared by all libraries of a process. */
static struct {
  CUcontext context;
  unsigned int retained;
  unsigned int flags;
} primaries[SIM_MAX_GPUS];

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

CUcontext context_primary(CUdevice device) {
  pthread_mutex_lock(&lock);
  CUcontext context = primaries[device].context;
  pthread_mutex_unlock(&lock);
  return context;
}

SIM_API CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device) {
  CUresult result = CUDA_SUCCESS;
  ENTER();
  NEED(context != NULL);
  NEED_DEVICE(device);
  pthread_mutex_lock(&lock);
  if (primaries[device].context == NULL) {
    result = context_open(&primaries[device].context, device, primaries[device].flags, 3020);
    if (result == CUDA_SUCCESS) primaries[device].context->primary = true;
  }
  if (result == CUDA_SUCCESS) {
    primaries[device].retained++;
    *context = primaries[device].context;
  }
  pthread_mutex_unlock(&lock);
  return result;
}

static CUresult end(CUdevice device) {
  if (primaries[device].context != NULL) context_close(primaries[device].context);
  primaries[device].context = NULL;
  primaries[device].retained = 0;
  return CUDA_SUCCESS;
}

SIM_API CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device) {
  CUresult result = CUDA_SUCCESS;
  ENTER();
  NEED_DEVICE(device);
  pthread_mutex_lock(&lock);
  if (primaries[device].retained == 0)
    result = CUDA_ERROR_INVALID_CONTEXT;
  else if (--primaries[device].retained == 0)
    result = end(device);
  pthread_mutex_unlock(&lock);
  return result;
}

SIM_API CUresult cuDevicePrimaryCtxRelease(CUdevice device) {
  return cuDevicePrimaryCtxRelease_v2(device);
}

SIM_API CUresult cuDevicePrimaryCtxReset_v2(CUdevice device) {
  ENTER();
  NEED_DEVICE(device);
  pthread_mutex_lock(&lock);
  CUresult result = end(device);
  pthread_mutex_unlock(&lock);
  return result;
}

SIM_API CUresult cuDevicePrimaryCtxReset(CUdevice device) {
  return cuDevicePrimaryCtxReset_v2(device);
}

SIM_API CUresult cuDevicePrimaryCtxSetFlags_v2(CUdevice device, unsigned int flags) {
  ENTER();
  NEED_DEVICE(device);
  NEED((flags & ~(unsigned int)CU_CTX_FLAGS_MASK) == 0);
  pthread_mutex_lock(&lock);
  primaries[device].flags = flags;
  if (primaries[device].context != NULL) primaries[device].context->flags = flags;
  pthread_mutex_unlock(&lock);
  return CUDA_SUCCESS;
}

SIM_API CUresult cuDevicePrimaryCtxSetFlags(CUdevice device, unsigned int flags) {
  return cuDevicePrimaryCtxSetFlags_v2(device, flags);
}

SIM_API CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned int *flags, int *active) {
  ENTER();
  NEED_DEVICE(device);
  pthread_mutex_lock(&lock);
  if (flags != NULL) *flags = primaries[device].flags;
  if (active != NULL) *active = primaries[device].context != NULL;
  pthread_mutex_unlock(&lock);
  return CUDA_SUCCESS;
}
