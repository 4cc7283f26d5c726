#include "event.h"

#include "capture.h"
#include "context.h"
#include "wait.h"

#include <stdlib.h>
#include <string.h>

enum {
  EVENT_MAGIC = 0x45564e54,
  RESOLUTION_NS = 512, /* GPU timestamps have a resolution of about half a microsecond */
  EVENT_FLAGS = CU_EVENT_BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS,
};

static pthread_mutex_t events_lock = PTHREAD_MUTEX_INITIALIZER;
static CUevent events;

static struct sim_event *row_of(CUevent event) {
  return &driver.machine->events[event->index];
}

CUresult event_check(CUevent event) {
  return event != NULL && event->magic == EVENT_MAGIC ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

int event_take_row(void) {
  static _Atomic uint32_t hint;
  struct sim_machine *machine = driver.machine;
  uint32_t start = atomic_load(&hint);
  for (uint32_t n = 0; n < SIM_MAX_EVENTS; n++) {
    uint32_t index = (start + n) % SIM_MAX_EVENTS, none = 0;
    struct sim_event *row = &machine->events[index];
    if (atomic_load_explicit(&row->owner, memory_order_relaxed) != 0) continue;
    if (!atomic_compare_exchange_strong(&row->owner, &none, driver.process + 1)) continue;
    uint32_t top = atomic_load(&machine->event_top);
    while (top <= index && !atomic_compare_exchange_weak(&machine->event_top, &top, index + 1)) {
    }
    /* The counters continue from the last owner, so a late operation cannot stamp the new event. */
    atomic_store(&row->recorded, atomic_load(&row->recorded) + 1);
    atomic_store(&row->reached, atomic_load(&row->recorded));
    atomic_store(&row->time_ns, 0);
    atomic_store(&hint, index);
    return (int)index;
  }
  return -1;
}

void event_give_row(uint32_t index) {
  atomic_store(&driver.machine->events[index].owner, 0);
}

static CUresult make(CUcontext context, uint32_t index, unsigned int flags, bool foreign, CUevent *result) {
  CUevent event = calloc(1, sizeof *event);
  if (event == NULL) return CUDA_ERROR_OUT_OF_MEMORY;
  event->magic = EVENT_MAGIC;
  event->index = index;
  event->context = context;
  event->flags = flags;
  event->foreign = foreign;
  pthread_mutex_init(&event->lock, NULL);
  pthread_mutex_lock(&events_lock);
  event->next = events;
  event->previous = &events;
  if (events != NULL) events->previous = &event->next;
  events = event;
  pthread_mutex_unlock(&events_lock);
  *result = event;
  return CUDA_SUCCESS;
}

CUresult event_open(CUcontext context, unsigned int flags, CUevent *event) {
  int index = event_take_row();
  if (index < 0) return CUDA_ERROR_OUT_OF_MEMORY;
  CUresult made = make(context, (uint32_t)index, flags, false, event);
  if (made != CUDA_SUCCESS) event_give_row((uint32_t)index);
  return made;
}

SIM_API CUresult cuEventCreate(CUevent *event, unsigned int flags) {
  CUcontext context;
  ENTER();
  NEED(event != NULL && (flags & ~(unsigned int)EVENT_FLAGS) == 0);
  NEED((flags & CU_EVENT_INTERPROCESS) == 0 || (flags & CU_EVENT_DISABLE_TIMING) != 0);
  TRY(driver_current(&context));
  return event_open(context, flags, event);
}

CUresult event_open_foreign(uint32_t index, CUevent *event) {
  CUcontext context;
  TRY(driver_current(&context));
  return make(context, index, CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS, true, event);
}

SIM_API CUresult cuEventDestroy_v2(CUevent event) {
  ENTER();
  TRY(event_check(event));
  event->magic = 0;
  if (!event->foreign) event_give_row(event->index);
  pthread_mutex_lock(&events_lock);
  *event->previous = event->next;
  if (event->next != NULL) event->next->previous = event->previous;
  pthread_mutex_unlock(&events_lock);
  pthread_mutex_destroy(&event->lock);
  free(event->captured);
  free(event);
  return CUDA_SUCCESS;
}

SIM_API CUresult cuEventDestroy(CUevent event) {
  return cuEventDestroy_v2(event);
}

CUresult event_record_in(CUstream stream, CUevent event) {
  struct sim_event *row = row_of(event);
  pthread_mutex_lock(&event->lock);
  uint64_t ticket = atomic_load(&row->recorded) + 1;
  struct sim_op op = {.kind = SIM_RECORD, .event = event->index, .ticket = ticket};
  op.work = driver.machine->node.event_ns;
  row->gpu = stream->context->gpu;
  row->channel = stream->channel;
  row->place = stream_push(stream, &op);
  atomic_store(&row->recorded, ticket);
  free(event->captured);
  event->captured = NULL;
  event->capture_id = 0;
  pthread_mutex_unlock(&event->lock);
  return CUDA_SUCCESS;
}

CUresult event_wait_in(CUstream stream, CUevent event, unsigned int flags) {
  TRY(event_check(event));
  if (capture_is_active(stream) || event->capture_id != 0) return capture_wait_event(stream, event, flags);
  struct sim_event *row = row_of(event);
  uint64_t ticket = atomic_load(&row->recorded);
  if (atomic_load(&row->reached) >= ticket) return CUDA_SUCCESS;
  struct sim_op op = {.kind = SIM_WAIT, .event = event->index, .ticket = ticket};
  stream_push(stream, &op);
  return CUDA_SUCCESS;
}

SIM_API CUresult cuEventRecordWithFlags(CUevent event, CUstream handle, unsigned int flags) {
  CUstream stream;
  ENTER();
  TRY(event_check(event));
  NEED((flags & ~(unsigned int)CU_EVENT_RECORD_EXTERNAL) == 0);
  TRY(stream_resolve(handle, &stream));
  if (stream->context != event->context && !event->foreign) return CUDA_ERROR_INVALID_HANDLE;
  if (capture_is_active(stream)) return capture_record_event(stream, event, flags);
  return event_record_in(stream, event);
}
PER_THREAD_SZ(cuEventRecordWithFlags, (CUevent event, CUstream stream, unsigned int flags), event, own_stream(stream),
              flags)

SIM_API CUresult cuEventRecord(CUevent event, CUstream stream) {
  return cuEventRecordWithFlags(event, stream, 0);
}
PER_THREAD_SZ(cuEventRecord, (CUevent event, CUstream stream), event, own_stream(stream))

SIM_API CUresult cuEventQuery(CUevent event) {
  ENTER();
  TRY(event_check(event));
  if (event->capture_id != 0) return CUDA_ERROR_CAPTURED_EVENT;
  TRY(capture_forbids());
  TRY(driver_context_health(event->context));
  uint64_t ticket = atomic_load(&row_of(event)->recorded);
  if (!sim_event_is_reached(driver.machine, event->index, ticket)) return CUDA_ERROR_NOT_READY;
  return driver_context_health(event->context);
}

SIM_API CUresult cuEventSynchronize(CUevent event) {
  ENTER();
  TRY(event_check(event));
  if (event->capture_id != 0) return CUDA_ERROR_CAPTURED_EVENT;
  TRY(capture_forbids());
  TRY(driver_context_health(event->context));
  bool blocking = (event->flags & CU_EVENT_BLOCKING_SYNC) != 0 || context_blocks(event->context);
  sim_wait_event(driver.machine, event->index, atomic_load(&row_of(event)->recorded), blocking);
  return driver_context_health(event->context);
}

/* The timestamp of an event; an error while it is not recorded or not reached. */
static CUresult stamp_of(CUevent event, uint64_t *time_ns) {
  TRY(event_check(event));
  if (event->flags & CU_EVENT_DISABLE_TIMING) return CUDA_ERROR_INVALID_HANDLE;
  TRY(driver_context_health(event->context));
  struct sim_event *row = row_of(event);
  if (!sim_event_is_reached(driver.machine, event->index, atomic_load(&row->recorded))) return CUDA_ERROR_NOT_READY;
  *time_ns = atomic_load(&row->time_ns);
  return *time_ns == 0 ? CUDA_ERROR_INVALID_HANDLE : CUDA_SUCCESS;
}

SIM_API CUresult cuEventElapsedTime_v2(float *milliseconds, CUevent start, CUevent end) {
  uint64_t from, to;
  ENTER();
  NEED(milliseconds != NULL);
  TRY(stamp_of(start, &from));
  TRY(stamp_of(end, &to));
  int64_t steps = (int64_t)(to / RESOLUTION_NS) - (int64_t)(from / RESOLUTION_NS);
  *milliseconds = (float)((double)(steps * RESOLUTION_NS) / 1e6);
  return CUDA_SUCCESS;
}

SIM_API CUresult cuEventElapsedTime(float *milliseconds, CUevent start, CUevent end) {
  return cuEventElapsedTime_v2(milliseconds, start, end);
}

/* ---- all streams of a context ---- */

SIM_API CUresult cuCtxRecordEvent(CUcontext context, CUevent event) {
  ENTER();
  TRY(event_check(event));
  if (context == NULL)
    TRY(driver_current(&context));
  else
    TRY(context_check(context));
  /* The legacy stream waits for all blocking streams; the non-blocking ones are waited for individually. */
  CUstream streams[SIM_MAX_CHANNELS];
  size_t count = stream_list(context, streams);
  for (size_t i = 0; i < count; i++) {
    if (!(streams[i]->flags & CU_STREAM_NON_BLOCKING)) continue;
    struct sim_op op = {.kind = SIM_JOIN, .channel = streams[i]->channel, .ticket = stream_tail(streams[i])};
    stream_push(context->legacy, &op);
  }
  return event_record_in(context->legacy, event);
}

SIM_API CUresult cuCtxWaitEvent(CUcontext context, CUevent event) {
  ENTER();
  TRY(event_check(event));
  if (context == NULL)
    TRY(driver_current(&context));
  else
    TRY(context_check(context));
  CUstream streams[SIM_MAX_CHANNELS];
  size_t count = stream_list(context, streams);
  for (size_t i = 0; i < count; i++)
    TRY(event_wait_in(streams[i], event, 0));
  return event_wait_in(context->legacy, event, 0);
}
