#include "stream.h"

#include "context.h"
#include "wait.h"

#include <stdlib.h>
#include <string.h>

enum {
  TOUCH_EVERY = 32, /* number of pushes after which the model is advanced, so that each step stays short */
  /* a full queue is drained to this level before the thread continues, instead of waiting for each place */
  ROOM = 128,
};

static CUstream make(CUcontext context, unsigned int channel_flags, unsigned int flags, int priority) {
  struct sim_machine *machine = driver.machine;
  CUstream stream = calloc(1, sizeof *stream);
  if (stream == NULL) return NULL;
  int channel;
  if (channel_flags & SIM_CHANNEL_LEGACY) {
    channel = (int)context->board->model.tenants[context->tenant].legacy;
  } else {
    sim_model_enter(machine, context->gpu);
    channel = sim_model_open_channel(&context->board->model, context->tenant, channel_flags, priority);
    sim_model_leave(machine, context->gpu);
  }
  if (channel < 0) {
    free(stream);
    return NULL;
  }
  stream->magic = STREAM_MAGIC;
  stream->channel = (uint32_t)channel;
  stream->context = context;
  stream->queue = &context->board->model.channels[channel];
  stream->flags = flags;
  stream->priority = priority;
  stream->id = atomic_fetch_add(&machine->ids, 1) + 1;
  pthread_mutex_init(&stream->lock, NULL);
  return stream;
}

static CUresult open_legacy(CUcontext context) {
  context->legacy = make(context, SIM_CHANNEL_LEGACY, CU_STREAM_DEFAULT, 0);
  return context->legacy == NULL ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
}

static void list(CUstream stream) {
  CUcontext context = stream->context;
  pthread_mutex_lock(&context->lock);
  stream->next = context->streams;
  context->streams = stream;
  pthread_mutex_unlock(&context->lock);
}

/* Structures of destroyed streams are reused and never freed, so a late use of a handle reads no foreign memory. */
static CUstream reuse(CUcontext context, unsigned int channel_flags, unsigned int flags, int priority) {
  pthread_mutex_lock(&context->lock);
  CUstream stream = context->streams;
  while (stream != NULL && !stream->destroyed)
    stream = stream->next;
  if (stream != NULL) {
    sim_model_enter(driver.machine, context->gpu);
    int channel = sim_model_open_channel(&context->board->model, context->tenant, channel_flags, priority);
    sim_model_leave(driver.machine, context->gpu);
    if (channel >= 0) {
      stream->channel = (uint32_t)channel;
      stream->queue = &context->board->model.channels[channel];
      stream->flags = flags;
      stream->priority = priority;
      stream->id = atomic_fetch_add(&driver.machine->ids, 1) + 1;
      stream->own = false;
      stream->capture = NULL;
      memset(&stream->policy, 0, sizeof stream->policy);
      stream->magic = STREAM_MAGIC;
      stream->destroyed = false;
    } else {
      stream = NULL;
    }
  }
  pthread_mutex_unlock(&context->lock);
  return stream;
}

CUresult stream_open(CUcontext context, unsigned int flags, int priority, CUstream *result) {
  unsigned int channel_flags = flags & CU_STREAM_NON_BLOCKING ? 0 : SIM_CHANNEL_BLOCKING;
  CUstream stream = reuse(context, channel_flags, flags, priority);
  if (stream == NULL) {
    stream = make(context, channel_flags, flags, priority);
    if (stream == NULL) return CUDA_ERROR_OUT_OF_MEMORY;
    list(stream);
  }
  *result = stream;
  return CUDA_SUCCESS;
}

void stream_close(CUstream stream) {
  CUcontext context = stream->context;
  pthread_mutex_lock(&context->lock);
  stream->magic = 0;
  sim_model_enter(driver.machine, context->gpu);
  sim_model_close_channel(&context->board->model, stream->channel);
  sim_model_leave(driver.machine, context->gpu);
  stream->destroyed = true;
  pthread_mutex_unlock(&context->lock);
}

static void close_all(CUcontext context) {
  pthread_mutex_lock(&context->lock);
  for (CUstream stream = context->streams; stream != NULL; stream = stream->next) {
    stream->destroyed = true;
    stream->magic = 0;
  }
  pthread_mutex_unlock(&context->lock);
}

size_t stream_list(CUcontext context, CUstream *streams) {
  size_t count = 0;
  pthread_mutex_lock(&context->lock);
  for (CUstream stream = context->streams; stream != NULL && count < SIM_MAX_CHANNELS; stream = stream->next)
    if (!stream->destroyed) streams[count++] = stream;
  pthread_mutex_unlock(&context->lock);
  return count;
}

/* The per-thread default stream of the calling thread in a context. */
static CUresult own(CUcontext context, CUstream *result) {
  if (thread.stream_context == context && thread.stream != NULL && !thread.stream->destroyed) {
    *result = thread.stream;
    return CUDA_SUCCESS;
  }
  pthread_mutex_lock(&context->lock);
  CUstream stream = context->streams;
  while (stream != NULL && !(stream->own && !stream->destroyed && pthread_equal(stream->thread, pthread_self())))
    stream = stream->next;
  pthread_mutex_unlock(&context->lock);
  if (stream == NULL) {
    TRY(stream_open(context, CU_STREAM_DEFAULT, 0, &stream));
    stream->own = true;
    stream->thread = pthread_self();
  }
  thread.stream_context = context;
  thread.stream = *result = stream;
  return CUDA_SUCCESS;
}

CUresult stream_resolve(CUstream handle, CUstream *stream) {
  CUcontext context;
  if (__builtin_expect((uintptr_t)handle > 2, 1)) {
    if (handle->magic != STREAM_MAGIC) return CUDA_ERROR_INVALID_HANDLE;
    context = handle->context;
    *stream = handle;
    return driver_context_health(context);
  }
  TRY(driver_current(&context));
  if (handle == CU_STREAM_PER_THREAD) return own(context, stream);
  *stream = context->legacy;
  return CUDA_SUCCESS;
}

uint64_t stream_push(CUstream stream, struct sim_op *op) {
  struct sim_machine *machine = driver.machine;
  CUcontext context = stream->context;
  struct sim_channel *queue = stream->queue;
  pthread_mutex_lock(&stream->lock);
  uint64_t submitted = atomic_load_explicit(&queue->submitted, memory_order_relaxed);
  if (submitted - atomic_load_explicit(&queue->done, memory_order_acquire) >= SIM_RING) {
    sim_model_touch(machine, context->gpu);
    if (submitted - atomic_load_explicit(&queue->done, memory_order_acquire) >= SIM_RING)
      sim_wait_channel(machine, context->gpu, stream->channel, submitted - SIM_RING + ROOM, context_blocks(context));
  }
  op->submitted_ns = sim_now(machine);
  uint64_t ticket = sim_model_push(&context->board->model, stream->channel, op);
  pthread_mutex_unlock(&stream->lock);
  if (ticket % TOUCH_EVERY == 0) sim_model_touch(machine, context->gpu);
  return ticket;
}

bool stream_is_done(CUstream stream) {
  uint64_t tail = stream_tail(stream);
  if (atomic_load_explicit(&stream->queue->done, memory_order_acquire) >= tail) return true;
  sim_touch_others(driver.machine, stream->context->gpu);
  sim_model_enter(driver.machine, stream->context->gpu);
  sim_model_leave(driver.machine, stream->context->gpu);
  return atomic_load_explicit(&stream->queue->done, memory_order_acquire) >= tail;
}

CUresult stream_wait_for(CUstream stream, uint64_t ticket) {
  CUcontext context = stream->context;
  sim_wait_channel(driver.machine, context->gpu, stream->channel, ticket, context_blocks(context));
  return driver_context_health(context);
}

CUresult stream_wait(CUstream stream) {
  return stream_wait_for(stream, stream_tail(stream));
}

static CUresult wait_all(CUcontext context) {
  CUstream streams[SIM_MAX_CHANNELS];
  size_t count = stream_list(context, streams);
  TRY(stream_wait(context->legacy));
  for (size_t i = 0; i < count; i++)
    TRY(stream_wait(streams[i]));
  return CUDA_SUCCESS;
}

CONTEXT_PART(CONTEXT_STREAMS, .open = open_legacy, .wait = wait_all, .close = close_all)
