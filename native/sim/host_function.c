#include "host_function.h"

#include "memory.h"

#include <signal.h>
#include <stdlib.h>

enum kind { FUNCTION, CALLBACK, WAIT_VALUE, WRITE_VALUE };

struct errand {
  struct errand *next;
  CUcontext context;
  uint32_t channel; /* not the stream: that may be destroyed before its work is done */
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
static struct errand *errands; /* in the order in which they came */
static bool started;

static uint64_t read_word(const struct errand *errand) {
  if (errand->wide) return atomic_load((_Atomic uint64_t *)(uintptr_t)errand->address);
  return atomic_load((_Atomic uint32_t *)(uintptr_t)errand->address);
}

/* False: what it waits for has not come. */
static bool run(const struct errand *errand) {
  switch (errand->kind) {
  case FUNCTION:
    errand->function(errand->data);
    return true;
  case CALLBACK:
    errand->callback(errand->handle, driver_context_health(errand->context), errand->data);
    return true;
  case WRITE_VALUE:
    if (errand->wide)
      atomic_store((_Atomic uint64_t *)(uintptr_t)errand->address, errand->value);
    else
      atomic_store((_Atomic uint32_t *)(uintptr_t)errand->address, (uint32_t)errand->value);
    return true;
  default: {
    uint64_t word = read_word(errand), mask = errand->wide ? UINT64_MAX : UINT32_MAX;
    switch (errand->flags & 3) {
    case CU_STREAM_WAIT_VALUE_GEQ:
      return errand->wide ? (int64_t)(word - errand->value) >= 0 : (int32_t)(word - errand->value) >= 0;
    case CU_STREAM_WAIT_VALUE_EQ:
      return word == (errand->value & mask);
    case CU_STREAM_WAIT_VALUE_AND:
      return (word & errand->value) != 0;
    default:
      return (~(word | errand->value) & mask) != 0;
    }
  }
  }
}

/* Is it the errand's turn? Says else when it may be. */
static bool is_due(const struct errand *errand, uint64_t *when) {
  CUcontext context = errand->context;
  if (atomic_load_explicit(&errand->queue->host_turn, memory_order_acquire) >= errand->place) return true;
  if (atomic_load_explicit(&errand->queue->done, memory_order_acquire) >= errand->place) return true; /* abandoned */
  sim_model_enter(driver.machine, context->gpu);
  uint64_t earliest =
      sim_model_earliest(&context->board->model, driver.machine->events, errand->channel, errand->place - 1);
  sim_model_leave(driver.machine, context->gpu);
  if (earliest < *when) *when = earliest;
  return atomic_load_explicit(&errand->queue->host_turn, memory_order_acquire) >= errand->place;
}

static void finish(struct errand *errand) {
  struct sim_channel *queue = errand->queue;
  if (atomic_load(&queue->host_done) < errand->place)
    atomic_store_explicit(&queue->host_done, errand->place, memory_order_release);
  uint32_t gpu = errand->context->gpu;
  sim_model_enter(driver.machine, gpu);
  sim_model_leave(driver.machine, gpu);
}

/* Does the first errand that is due. The caller holds the lock, and has it again afterwards. */
static void do_one(uint64_t *when) {
  for (struct errand **at = &errands; *at != NULL; at = &(*at)->next) {
    struct errand *errand = *at;
    if (!is_due(errand, when)) continue;
    bool abandoned = atomic_load_explicit(&errand->queue->done, memory_order_acquire) >= errand->place;
    pthread_mutex_unlock(&lock);
    bool done = abandoned || run(errand);
    if (done) finish(errand);
    pthread_mutex_lock(&lock);
    if (!done) continue;
    /* Others may have been put behind meanwhile, none in front. */
    for (at = &errands; *at != errand; at = &(*at)->next) {
    }
    *at = errand->next;
    free(errand);
    *when = 0;
    return;
  }
}

static void *work(void *nothing) {
  (void)nothing;
  pthread_mutex_lock(&lock);
  for (;;) {
    uint64_t when = SIM_NEVER;
    while (errands == NULL)
      pthread_cond_wait(&more, &lock);
    do_one(&when);
    if (when == 0) continue;
    pthread_mutex_unlock(&lock);
    sim_clock_wait(driver.machine, when, SIM_YIELD);
    pthread_mutex_lock(&lock);
  }
  return NULL;
}

/* The caller holds the lock. Signals are for the program's own threads. */
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

static CUresult push(CUstream stream, const struct errand *model) {
  struct errand *errand = malloc(sizeof *errand);
  if (errand == NULL) return CUDA_ERROR_OUT_OF_MEMORY;
  *errand = *model;
  errand->next = NULL;
  errand->context = stream->context;
  errand->channel = stream->channel;
  errand->queue = stream->queue;
  pthread_mutex_lock(&lock);
  bool ready = start();
  pthread_mutex_unlock(&lock);
  if (!ready) {
    free(errand);
    return CUDA_ERROR_OPERATING_SYSTEM;
  }
  /* Not under the lock: a full queue is waited for, and it may be the worker that empties it. */
  struct sim_op op = {.kind = SIM_HOST};
  errand->place = stream_push(stream, &op);
  pthread_mutex_lock(&lock);
  struct errand **last = &errands;
  while (*last != NULL)
    last = &(*last)->next;
  *last = errand;
  pthread_cond_signal(&more);
  pthread_mutex_unlock(&lock);
  return CUDA_SUCCESS;
}

CUresult host_function_run_in(CUstream stream, CUhostFn function, void *data) {
  struct errand errand = {.kind = FUNCTION, .function = function, .data = data};
  return push(stream, &errand);
}

CUresult host_callback_push(CUstream stream, CUstream handle, CUstreamCallback callback, void *data) {
  struct errand errand = {.kind = CALLBACK, .callback = callback, .handle = handle, .data = data};
  return push(stream, &errand);
}

CUresult host_value_wait(CUstream stream, CUdeviceptr address, uint64_t value, bool wide, unsigned int flags) {
  NEED(memory_commit(address, wide ? 8 : 4));
  struct errand errand = {.kind = WAIT_VALUE, .address = address, .value = value, .wide = wide, .flags = flags};
  return push(stream, &errand);
}

CUresult host_value_write(CUstream stream, CUdeviceptr address, uint64_t value, bool wide) {
  NEED(memory_commit(address, wide ? 8 : 4));
  struct errand errand = {.kind = WRITE_VALUE, .address = address, .value = value, .wide = wide};
  return push(stream, &errand);
}
