#include "capture.h"
#include "context.h"
#include "event.h"
#include "host_function.h"
#include "pool.h"
#include "stream.h"
#include "task.h"

/* ---- creation and destruction ---- */

SIM_API CUresult cuStreamCreateWithPriority(CUstream *stream, unsigned int flags, int priority) {
  CUcontext context;
  ENTER();
  NEED(stream != NULL && (flags & ~(unsigned int)CU_STREAM_NON_BLOCKING) == 0);
  TRY(driver_current(&context));
  if (priority > 0) priority = 0;
  if (priority < STREAM_GREATEST_PRIORITY) priority = STREAM_GREATEST_PRIORITY;
  return stream_open(context, flags, priority, stream);
}

SIM_API CUresult cuStreamCreate(CUstream *stream, unsigned int flags) {
  return cuStreamCreateWithPriority(stream, flags, 0);
}

SIM_API CUresult cuStreamDestroy_v2(CUstream handle) {
  CUstream stream;
  ENTER();
  if ((uintptr_t)handle <= 2) return CUDA_ERROR_INVALID_HANDLE;
  TRY(stream_resolve(handle, &stream));
  capture_abandon(stream);
  stream_close(stream);
  return CUDA_SUCCESS;
}

SIM_API CUresult cuStreamDestroy(CUstream stream) {
  return cuStreamDestroy_v2(stream);
}

/* ---- queries ---- */

SIM_API CUresult cuStreamGetPriority(CUstream handle, int *priority) {
  CUstream stream;
  ENTER();
  NEED(priority != NULL);
  TRY(stream_resolve(handle, &stream));
  *priority = stream->priority;
  return CUDA_SUCCESS;
}
PER_THREAD_SZ(cuStreamGetPriority, (CUstream stream, int *priority), own_stream(stream), priority)

SIM_API CUresult cuStreamGetFlags(CUstream handle, unsigned int *flags) {
  CUstream stream;
  ENTER();
  NEED(flags != NULL);
  TRY(stream_resolve(handle, &stream));
  *flags = stream->flags;
  return CUDA_SUCCESS;
}
PER_THREAD_SZ(cuStreamGetFlags, (CUstream stream, unsigned int *flags), own_stream(stream), flags)

SIM_API CUresult cuStreamGetId(CUstream handle, unsigned long long *id) {
  CUstream stream;
  ENTER();
  NEED(id != NULL);
  TRY(stream_resolve(handle, &stream));
  *id = stream->id;
  return CUDA_SUCCESS;
}
PER_THREAD_SZ(cuStreamGetId, (CUstream stream, unsigned long long *id), own_stream(stream), id)

SIM_API CUresult cuStreamGetDevice(CUstream handle, CUdevice *device) {
  CUstream stream;
  ENTER();
  NEED(device != NULL);
  TRY(stream_resolve(handle, &stream));
  *device = stream->context->device;
  return CUDA_SUCCESS;
}
PER_THREAD_SZ(cuStreamGetDevice, (CUstream stream, CUdevice *device), own_stream(stream), device)

SIM_API CUresult cuStreamGetCtx(CUstream handle, CUcontext *context) {
  CUstream stream;
  ENTER();
  NEED(context != NULL);
  TRY(stream_resolve(handle, &stream));
  *context = stream->context;
  return CUDA_SUCCESS;
}
PER_THREAD_SZ(cuStreamGetCtx, (CUstream stream, CUcontext *context), own_stream(stream), context)

SIM_API CUresult cuStreamGetCtx_v2(CUstream handle, CUcontext *context, CUgreenCtx *green) {
  CUstream stream;
  ENTER();
  NEED(context != NULL);
  TRY(stream_resolve(handle, &stream));
  *context = stream->context;
  if (green != NULL) *green = NULL;
  return CUDA_SUCCESS;
}
PER_THREAD_SZ(cuStreamGetCtx_v2, (CUstream stream, CUcontext *context, CUgreenCtx *green), own_stream(stream), context,
              green)

SIM_API CUresult cuStreamSetAttribute(CUstream handle, CUstreamAttrID id, const CUstreamAttrValue *value) {
  CUstream stream;
  ENTER();
  NEED(value != NULL);
  TRY(stream_resolve(handle, &stream));
  if (id == CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY || id == CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW)
    stream->policy = *value;
  return CUDA_SUCCESS;
}
PER_THREAD_SZ(cuStreamSetAttribute, (CUstream stream, CUstreamAttrID id, const CUstreamAttrValue *value),
              own_stream(stream), id, value)

SIM_API CUresult cuStreamGetAttribute(CUstream handle, CUstreamAttrID id, CUstreamAttrValue *value) {
  CUstream stream;
  ENTER();
  NEED(value != NULL);
  TRY(stream_resolve(handle, &stream));
  if (id == CU_LAUNCH_ATTRIBUTE_PRIORITY)
    value->priority = stream->priority;
  else
    *value = stream->policy;
  return CUDA_SUCCESS;
}
PER_THREAD_SZ(cuStreamGetAttribute, (CUstream stream, CUstreamAttrID id, CUstreamAttrValue *value), own_stream(stream),
              id, value)

SIM_API CUresult cuStreamCopyAttributes(CUstream to, CUstream from) {
  CUstream target, source;
  ENTER();
  TRY(stream_resolve(to, &target));
  TRY(stream_resolve(from, &source));
  target->policy = source->policy;
  return CUDA_SUCCESS;
}
PER_THREAD_SZ(cuStreamCopyAttributes, (CUstream to, CUstream from), own_stream(to), own_stream(from))

/* ---- synchronisation ---- */

SIM_API CUresult cuStreamQuery(CUstream handle) {
  CUstream stream;
  ENTER();
  TRY(stream_resolve(handle, &stream));
  TRY(capture_refuses(stream));
  if (!stream_is_done(stream)) return CUDA_ERROR_NOT_READY;
  return driver_context_health(stream->context);
}
PER_THREAD_SZ(cuStreamQuery, (CUstream stream), own_stream(stream))

SIM_API CUresult cuStreamSynchronize(CUstream handle) {
  CUstream stream;
  ENTER();
  TRY(stream_resolve(handle, &stream));
  TRY(capture_refuses(stream));
  TRY(stream_wait(stream));
  pool_settle(stream->context);
  return CUDA_SUCCESS;
}
PER_THREAD_SZ(cuStreamSynchronize, (CUstream stream), own_stream(stream))

SIM_API CUresult cuStreamWaitEvent(CUstream handle, CUevent event, unsigned int flags) {
  CUstream stream;
  ENTER();
  NEED((flags & ~(unsigned int)CU_EVENT_WAIT_EXTERNAL) == 0);
  TRY(stream_resolve(handle, &stream));
  return event_wait_in(stream, event, flags);
}
PER_THREAD_SZ(cuStreamWaitEvent, (CUstream stream, CUevent event, unsigned int flags), own_stream(stream), event, flags)

/* ---- host functions ---- */

SIM_API CUresult cuLaunchHostFunc(CUstream handle, CUhostFn function, void *data) {
  CUstream stream;
  ENTER();
  NEED(function != NULL);
  TRY(stream_resolve(handle, &stream));
  struct task task = {.type = CU_GRAPH_NODE_TYPE_HOST, .host = {.function = function, .data = data}};
  return task_submit(stream, &task);
}
PER_THREAD_SZ(cuLaunchHostFunc, (CUstream stream, CUhostFn function, void *data), own_stream(stream), function, data)

SIM_API CUresult cuStreamAddCallback(CUstream handle, CUstreamCallback callback, void *data, unsigned int flags) {
  CUstream stream;
  ENTER();
  NEED(callback != NULL && flags == 0);
  TRY(stream_resolve(handle, &stream));
  if (capture_is_active(stream)) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  return host_callback_push(stream, handle, callback, data);
}
PER_THREAD_SZ(cuStreamAddCallback, (CUstream stream, CUstreamCallback callback, void *data, unsigned int flags),
              own_stream(stream), callback, data, flags)
