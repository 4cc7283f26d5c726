#include "host_function.h"

#include "memory.h"

#include <signal.h>
#include <stdlib.h>

enum kind { FUNCTION, CALLBACK, WAIT_VALUE, WRITE_VALUE };

struct host_task {
  struct host_task *next;
  CUcontext context;
  uint32_t channel; /* channel instead of stream, because the stream may be destroyed before its work is complete */
  struct sim_channel *queue;
  uint64_t place; /* ticket of the channel's SIM_HOST operation */
  enum kind kind;
  union {
    struct {
      CUhostFn function;
      CUstreamCallback callback;
      CUstream handle;
      void *data;
    };
    struct {
      CUdeviceptr address;
      uint64_t value;
      bool wide;
      unsigned int flags;
    };
  };
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t more = PTHREAD_COND_INITIALIZER;
static struct host_task *host_tasks; /* in the order of submission */
static bool started;

static uint64_t read_word(const struct host_task *host_task) {
  if (host_task->wide) return atomic_load((_Atomic uint64_t *)(uintptr_t)host_task->address);
  return atomic_load((_Atomic uint32_t *)(uintptr_t)host_task->address);
}

/* False: the awaited condition does not hold yet. */
static bool run(const struct host_task *host_task) {
  switch (host_task->kind) {
  case FUNCTION:
    host_task->function(host_task->data);
    return true;
  case CALLBACK:
    host_task->callback(host_task->handle, driver_context_health(host_task->context), host_task->data);
    return true;
  case WRITE_VALUE:
    if (host_task->wide)
      atomic_store((_Atomic uint64_t *)(uintptr_t)host_task->address, host_task->value);
    else
      atomic_store((_Atomic uint32_t *)(uintptr_t)host_task->address, (uint32_t)host_task->value);
    return true;
  default: {
    uint64_t word = read_word(host_task), mask = host_task->wide ? UINT64_MAX : UINT32_MAX;
    switch (host_task->flags & 3) {
    case CU_STREAM_WAIT_VALUE_GEQ:
      return host_task->wide ? (int64_t)(word - host_task->value) >= 0 : (int32_t)(word - host_task->value) >= 0;
    case CU_STREAM_WAIT_VALUE_EQ:
      return word == (host_task->value & mask);
    case CU_STREAM_WAIT_VALUE_AND:
      return (word & host_task->value) != 0;
    default:
      return (~(word | host_task->value) & mask) != 0;
    }
  }
  }
}

/* Whether the host task may run now. Otherwise `when` is the earliest time. */
static bool is_due(const struct host_task *host_task, uint64_t *when) {
  CUcontext context = host_task->context;
  if (atomic_load_explicit(&host_task->queue->host_turn, memory_order_acquire) >= host_task->place) return true;
  if (atomic_load_explicit(&host_task->queue->done, memory_order_acquire) >= host_task->place)
    return true; /* abandoned */
  sim_model_enter(driver.machine, context->gpu);
  uint64_t earliest =
      sim_model_earliest(&context->board->model, driver.machine->events, host_task->channel, host_task->place - 1);
  sim_model_leave(driver.machine, context->gpu);
  if (earliest < *when) *when = earliest;
  return atomic_load_explicit(&host_task->queue->host_turn, memory_order_acquire) >= host_task->place;
}

static void finish(struct host_task *host_task) {
  struct sim_channel *queue = host_task->queue;
  if (atomic_load(&queue->host_done) < host_task->place)
    atomic_store_explicit(&queue->host_done, host_task->place, memory_order_release);
  uint32_t gpu = host_task->context->gpu;
  sim_model_enter(driver.machine, gpu);
  sim_model_leave(driver.machine, gpu);
}

/* Runs the first host task that is due. The caller holds the lock; it is released while the task runs. */
static void run_one(uint64_t *when) {
  for (struct host_task **at = &host_tasks; *at != NULL; at = &(*at)->next) {
    struct host_task *host_task = *at;
    if (!is_due(host_task, when)) continue;
    bool abandoned = atomic_load_explicit(&host_task->queue->done, memory_order_acquire) >= host_task->place;
    pthread_mutex_unlock(&lock);
    bool done = abandoned || run(host_task);
    if (done) finish(host_task);
    pthread_mutex_lock(&lock);
    if (!done) continue;
    /* Other threads may have appended tasks meanwhile, but inserted none in front. */
    for (at = &host_tasks; *at != host_task; at = &(*at)->next) {
    }
    *at = host_task->next;
    free(host_task);
    *when = 0;
    return;
  }
}

static void *work(void *nothing) {
  (void)nothing;
  pthread_mutex_lock(&lock);
  for (;;) {
    uint64_t when = SIM_NEVER;
    while (host_tasks == NULL)
      pthread_cond_wait(&more, &lock);
    run_one(&when);
    if (when == 0) continue;
    pthread_mutex_unlock(&lock);
    sim_clock_wait(driver.machine, when, SIM_YIELD);
    pthread_mutex_lock(&lock);
  }
  return NULL;
}

/* The caller holds the lock. Signals stay blocked in the worker, so that the program's own threads handle them. */
static bool start(void) {
  if (started) return true;
  pthread_t worker;
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  started = pthread_create(&worker, NULL, work, NULL) == 0;
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  if (started) pthread_detach(worker);
  return started;
}

static CUresult push(CUstream stream, const struct host_task *model) {
  struct host_task *host_task = malloc(sizeof *host_task);
  if (host_task == NULL) return CUDA_ERROR_OUT_OF_MEMORY;
  *host_task = *model;
  host_task->next = NULL;
  host_task->context = stream->context;
  host_task->channel = stream->channel;
  host_task->queue = stream->queue;
  pthread_mutex_lock(&lock);
  bool ready = start();
  pthread_mutex_unlock(&lock);
  if (!ready) {
    free(host_task);
    return CUDA_ERROR_OPERATING_SYSTEM;
  }
  /* Without the lock: pushing waits while the queue is full, and the worker may have to empty it. */
  struct sim_op op = {.kind = SIM_HOST};
  host_task->place = stream_push(stream, &op);
  pthread_mutex_lock(&lock);
  struct host_task **last = &host_tasks;
  while (*last != NULL)
    last = &(*last)->next;
  *last = host_task;
  pthread_cond_signal(&more);
  pthread_mutex_unlock(&lock);
  return CUDA_SUCCESS;
}

CUresult host_function_run_in(CUstream stream, CUhostFn function, void *data) {
  struct host_task host_task = {.kind = FUNCTION, .function = function, .data = data};
  return push(stream, &host_task);
}

CUresult host_callback_push(CUstream stream, CUstream handle, CUstreamCallback callback, void *data) {
  struct host_task host_task = {.kind = CALLBACK, .callback = callback, .handle = handle, .data = data};
  return push(stream, &host_task);
}

CUresult host_value_wait(CUstream stream, CUdeviceptr address, uint64_t value, bool wide, unsigned int flags) {
  NEED(memory_commit(address, wide ? 8 : 4));
  struct host_task host_task = {.kind = WAIT_VALUE, .address = address, .value = value, .wide = wide, .flags = flags};
  return push(stream, &host_task);
}

CUresult host_value_write(CUstream stream, CUdeviceptr address, uint64_t value, bool wide) {
  NEED(memory_commit(address, wide ? 8 : 4));
  struct host_task host_task = {.kind = WRITE_VALUE, .address = address, .value = value, .wide = wide};
  return push(stream, &host_task);
}
