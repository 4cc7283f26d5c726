#include "capture.h"
#include "context.h"
#include "stream.h"

/* ---- context creation ---- */

static CUresult create(CUcontext *context, unsigned int flags, CUdevice device, unsigned int api_version) {
  NEED(context != NULL);
  NEED_DEVICE(device);
  NEED((flags & ~(unsigned int)CU_CTX_FLAGS_MASK) == 0);
  TRY(thread.depth < THREAD_CONTEXTS ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY);
  TRY(context_open(context, device, flags, api_version));
  thread.contexts[thread.depth++] = *context;
  return CUDA_SUCCESS;
}

SIM_API CUresult cuCtxCreate(CUcontext *context, unsigned int flags, CUdevice device) {
  ENTER();
  return create(context, flags, device, 3010);
}

SIM_API CUresult cuCtxCreate_v2(CUcontext *context, unsigned int flags, CUdevice device) {
  ENTER();
  return create(context, flags, device, 3020);
}

SIM_API CUresult cuCtxCreate_v3(CUcontext *context, CUexecAffinityParam *affinities, int count, unsigned int flags,
                                CUdevice device) {
  ENTER();
  if (affinities != NULL && count > 0) return CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY;
  return create(context, flags, device, 3020);
}

SIM_API CUresult cuCtxCreate_v4(CUcontext *context, CUctxCreateParams *parameters, unsigned int flags,
                                CUdevice device) {
  ENTER();
  if (parameters != NULL && parameters->numExecAffinityParams > 0) return CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY;
  if (parameters != NULL && parameters->cigParams != NULL) return CUDA_ERROR_NOT_SUPPORTED;
  return create(context, flags, device, 3020);
}

/* Contexts that share objects with a graphics API, of which the simulated driver has none. */

SIM_API CUresult cuGLCtxCreate(CUcontext *context, unsigned int flags, CUdevice device) {
  ENTER();
  return create(context, flags, device, 3010);
}

SIM_API CUresult cuGLCtxCreate_v2(CUcontext *context, unsigned int flags, CUdevice device) {
  ENTER();
  return create(context, flags, device, 3020);
}

SIM_API CUresult cuVDPAUCtxCreate(CUcontext *context, unsigned int flags, CUdevice device, uint32_t display,
                                  void *lookup) {
  ENTER();
  (void)display, (void)lookup;
  return create(context, flags, device, 3010);
}

SIM_API CUresult cuVDPAUCtxCreate_v2(CUcontext *context, unsigned int flags, CUdevice device, uint32_t display,
                                     void *lookup) {
  ENTER();
  (void)display, (void)lookup;
  return create(context, flags, device, 3020);
}

static void remove_current(CUcontext context) {
  if (thread.depth > 0 && thread.contexts[thread.depth - 1] == context) thread.depth--;
}

static CUresult destroy(CUcontext context) {
  TRY(context_check(context));
  if (context->primary) return CUDA_ERROR_INVALID_CONTEXT;
  remove_current(context);
  context_close(context);
  return CUDA_SUCCESS;
}

SIM_API CUresult cuCtxDestroy(CUcontext context) {
  ENTER();
  return destroy(context);
}

SIM_API CUresult cuCtxDestroy_v2(CUcontext context) {
  ENTER();
  return destroy(context);
}

SIM_API CUresult cuCtxAttach(CUcontext *result, unsigned int flags) {
  CUcontext context;
  ENTER();
  NEED(result != NULL && flags == 0);
  TRY(driver_current(&context));
  context->references++;
  *result = context;
  return CUDA_SUCCESS;
}

SIM_API CUresult cuCtxDetach(CUcontext context) {
  ENTER();
  TRY(context_check(context));
  if (--context->references > 0) return CUDA_SUCCESS;
  return destroy(context);
}

/* ---- current context ---- */

static CUresult push(CUcontext context) {
  TRY(context_check(context));
  TRY(thread.depth < THREAD_CONTEXTS ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY);
  thread.contexts[thread.depth++] = context;
  return CUDA_SUCCESS;
}

static CUresult pop(CUcontext *context) {
  if (thread.depth == 0) return CUDA_ERROR_INVALID_CONTEXT;
  thread.depth--;
  if (context != NULL) *context = thread.contexts[thread.depth];
  return CUDA_SUCCESS;
}

SIM_API CUresult cuCtxPushCurrent(CUcontext context) {
  ENTER();
  return push(context);
}

SIM_API CUresult cuCtxPushCurrent_v2(CUcontext context) {
  ENTER();
  return push(context);
}

SIM_API CUresult cuCtxPopCurrent(CUcontext *context) {
  ENTER();
  return pop(context);
}

SIM_API CUresult cuCtxPopCurrent_v2(CUcontext *context) {
  ENTER();
  return pop(context);
}

SIM_API CUresult cuCtxSetCurrent(CUcontext context) {
  ENTER();
  if (context == NULL) {
    if (thread.depth > 0) thread.depth--;
    return CUDA_SUCCESS;
  }
  TRY(context_check(context));
  if (thread.depth == 0) thread.depth = 1;
  thread.contexts[thread.depth - 1] = context;
  return CUDA_SUCCESS;
}

SIM_API CUresult cuCtxGetCurrent(CUcontext *context) {
  ENTER();
  NEED(context != NULL);
  *context = thread.depth > 0 ? thread.contexts[thread.depth - 1] : NULL;
  return CUDA_SUCCESS;
}

/* ---- queries ---- */

/* NULL selects the current context. */
static CUresult given(CUcontext *context) {
  return *context == NULL ? driver_current(context) : context_check(*context);
}

SIM_API CUresult cuCtxGetDevice_v2(CUdevice *device, CUcontext context) {
  ENTER();
  NEED(device != NULL);
  TRY(given(&context));
  *device = context->device;
  return CUDA_SUCCESS;
}

SIM_API CUresult cuCtxGetDevice(CUdevice *device) {
  return cuCtxGetDevice_v2(device, NULL);
}

SIM_API CUresult cuCtxGetFlags(unsigned int *flags) {
  CUcontext context;
  ENTER();
  NEED(flags != NULL);
  TRY(driver_current(&context));
  *flags = context->flags;
  return CUDA_SUCCESS;
}

SIM_API CUresult cuCtxSetFlags(unsigned int flags) {
  CUcontext context;
  ENTER();
  NEED((flags & ~(unsigned int)CU_CTX_FLAGS_MASK) == 0);
  TRY(driver_current(&context));
  context->flags = flags;
  return CUDA_SUCCESS;
}

SIM_API CUresult cuCtxGetId(CUcontext context, unsigned long long *id) {
  ENTER();
  NEED(id != NULL);
  TRY(given(&context));
  *id = context->id;
  return CUDA_SUCCESS;
}

SIM_API CUresult cuCtxGetApiVersion(CUcontext context, unsigned int *version) {
  ENTER();
  NEED(version != NULL);
  TRY(given(&context));
  *version = context->api_version;
  return CUDA_SUCCESS;
}

SIM_API CUresult cuCtxSynchronize_v2(CUcontext context) {
  ENTER();
  TRY(given(&context));
  TRY(driver_context_health(context));
  TRY(capture_forbids());
  return context_synchronize(context);
}

SIM_API CUresult cuCtxSynchronize(void) {
  return cuCtxSynchronize_v2(NULL);
}

static CUresult limit_of(CUcontext *context, CUlimit limit) {
  TRY(driver_current(context));
  if ((unsigned int)limit >= sizeof(*context)->limits / sizeof(*context)->limits[0])
    return CUDA_ERROR_UNSUPPORTED_LIMIT;
  return CUDA_SUCCESS;
}

SIM_API CUresult cuCtxSetLimit(CUlimit limit, size_t value) {
  CUcontext context;
  ENTER();
  TRY(limit_of(&context, limit));
  return context_set_limit(context, limit, value);
}

SIM_API CUresult cuCtxGetLimit(size_t *value, CUlimit limit) {
  CUcontext context;
  ENTER();
  NEED(value != NULL);
  TRY(limit_of(&context, limit));
  *value = context->limits[limit];
  return CUDA_SUCCESS;
}

SIM_API CUresult cuCtxGetCacheConfig(CUfunc_cache *config) {
  CUcontext context;
  ENTER();
  NEED(config != NULL);
  TRY(driver_current(&context));
  *config = context->cache;
  return CUDA_SUCCESS;
}

SIM_API CUresult cuCtxSetCacheConfig(CUfunc_cache config) {
  CUcontext context;
  ENTER();
  TRY(driver_current(&context));
  context->cache = config;
  return CUDA_SUCCESS;
}

SIM_API CUresult cuCtxGetSharedMemConfig(CUsharedconfig *config) {
  CUcontext context;
  ENTER();
  NEED(config != NULL);
  TRY(driver_current(&context));
  *config = context->shared;
  return CUDA_SUCCESS;
}

SIM_API CUresult cuCtxSetSharedMemConfig(CUsharedconfig config) {
  CUcontext context;
  ENTER();
  TRY(driver_current(&context));
  context->shared = config;
  return CUDA_SUCCESS;
}

SIM_API CUresult cuCtxGetStreamPriorityRange(int *least, int *greatest) {
  CUcontext context;
  ENTER();
  TRY(driver_current(&context));
  if (least != NULL) *least = 0;
  if (greatest != NULL) *greatest = STREAM_GREATEST_PRIORITY;
  return CUDA_SUCCESS;
}

SIM_API CUresult cuCtxResetPersistingL2Cache(void) {
  CUcontext context;
  ENTER();
  return driver_current(&context);
}

SIM_API CUresult cuCtxGetExecAffinity(CUexecAffinityParam *affinity, CUexecAffinityType type) {
  CUcontext context;
  ENTER();
  NEED(affinity != NULL);
  TRY(driver_current(&context));
  if (type != CU_EXEC_AFFINITY_TYPE_SM_COUNT) return CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY;
  affinity->type = type;
  affinity->param.smCount.val = driver_gpu(context->device)->sms;
  return CUDA_SUCCESS;
}
