#include "context.h"

#include "clock.h"
#include "fault.h"
#include "ledger.h"
#include "model.h"
#include "mps_client.h"

#include <stdlib.h>
#include <string.h>

static pthread_mutex_t contexts_lock = PTHREAD_MUTEX_INITIALIZER;
static CUcontext contexts;

/* Filled by constructors, before the program has threads that could call the library. */
static const struct context_part *parts[CONTEXT_PARTS];

void context_register(enum context_order order, const struct context_part *part) {
  parts[order] = part;
}

static CUresult open_parts(CUcontext context) {
  for (size_t i = 0; i < CONTEXT_PARTS; i++)
    if (parts[i]->open != NULL) TRY(parts[i]->open(context));
  return CUDA_SUCCESS;
}

/* The first caller that notices the failure of a context reports the XID to NVML's event sets, as the kernel driver
 * does. */
static void report(CUcontext context, CUresult error) {
  enum { XID_EVENT = 8, XID_GRAPHICS_ENGINE = 13, XID_MEMORY_PAGE_FAULT = 31 };
  bool is_of_mps = error == CUDA_ERROR_MPS_RPC_FAILURE || error == CUDA_ERROR_MPS_CLIENT_TERMINATED;
  if (error == (CUresult)SIM_ERROR_LOST || is_of_mps || atomic_exchange(&context->reported, true)) return;
  sim_nvml_event_publish(driver.machine, context->gpu, XID_EVENT,
                         error == CUDA_ERROR_ILLEGAL_ADDRESS ? XID_MEMORY_PAGE_FAULT : XID_GRAPHICS_ENGINE);
}

CUresult driver_context_health(CUcontext context) {
  if (context->destroyed) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
  uint32_t error = atomic_load(&context->board->model.tenants[context->tenant].error);
  if (error != 0) {
    report(context, (CUresult)error);
    return (CUresult)error;
  }
  return atomic_load(&context->board->lost) ? (CUresult)SIM_ERROR_LOST : CUDA_SUCCESS;
}

CUresult context_check(CUcontext context) {
  bool known = false;
  pthread_mutex_lock(&contexts_lock);
  for (CUcontext c = contexts; c != NULL && !known; c = c->next)
    known = c == context;
  pthread_mutex_unlock(&contexts_lock);
  if (!known) return CUDA_ERROR_INVALID_CONTEXT;
  return context->destroyed ? CUDA_ERROR_CONTEXT_IS_DESTROYED : CUDA_SUCCESS;
}

CUcontext context_next(CUcontext after) {
  pthread_mutex_lock(&contexts_lock);
  CUcontext context = after == NULL ? contexts : after->next;
  while (context != NULL && context->destroyed)
    context = context->next;
  pthread_mutex_unlock(&contexts_lock);
  return context;
}

static void set_limits(CUcontext context) {
  context->limits[CU_LIMIT_STACK_SIZE] = 1024;
  context->limits[CU_LIMIT_PRINTF_FIFO_SIZE] = 1 << 20;
  context->limits[CU_LIMIT_MALLOC_HEAP_SIZE] = 8 << 20;
  context->limits[CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH] = 2;
  context->limits[CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT] = 2048;
  context->limits[CU_LIMIT_MAX_L2_FETCH_GRANULARITY] = 64;
  memcpy(context->first_limits, context->limits, sizeof context->limits);
}

static CUresult open_on_gpu(CUcontext context) {
  struct sim_machine *machine = driver.machine;
  if (atomic_load(&context->board->lost)) return CUDA_ERROR_DEVICE_UNAVAILABLE;
  uint32_t mode = atomic_load(&context->board->compute_mode);
  if (mode == CU_COMPUTEMODE_PROHIBITED) return CUDA_ERROR_DEVICE_UNAVAILABLE;
  if (!sim_ledger_take(machine, driver.process, context->gpu, machine->node.context_bytes))
    return CUDA_ERROR_OUT_OF_MEMORY;
  sim_model_enter(machine, context->gpu);
  int tenant = sim_model_open_tenant(&context->board->model, driver.process);
  sim_model_leave(machine, context->gpu);
  if (tenant < 0) {
    sim_ledger_give(machine, driver.process, context->gpu, machine->node.context_bytes);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  context->tenant = (uint32_t)tenant;
  mps_client_join(context);
  atomic_fetch_add(&machine->processes[driver.process].contexts[context->gpu], 1);
  return CUDA_SUCCESS;
}

/* Contexts of several processes are created side by side. */
static void spend_creation_time(void) {
  const struct sim_machine *machine = driver.machine;
  if (machine->node.context_ns == 0) return;
  for (uint64_t end_ns = sim_now(machine) + machine->node.context_ns; sim_now(machine) < end_ns;)
    sim_clock_wait(driver.machine, end_ns, SIM_SLEEP);
}

/* Beside a later context of the same GPU there is no room for one of CUDA 2, whose addresses have 32 bits. So answers
 * driver 580; what it answers in the other order is not known, and allowed. */
static bool has_room(CUdevice device, unsigned int api_version) {
  if (api_version >= API_VERSION_WIDE) return true;
  for (CUcontext other = context_next(NULL); other != NULL; other = context_next(other))
    if (other->device == device && other->api_version >= API_VERSION_WIDE) return false;
  return true;
}

CUresult context_open(CUcontext *result, CUdevice device, unsigned int flags, unsigned int api_version) {
  if (!has_room(device, api_version)) return CUDA_ERROR_OUT_OF_MEMORY;
  CUcontext context = calloc(1, sizeof *context);
  if (context == NULL) return CUDA_ERROR_OUT_OF_MEMORY;
  context->device = device;
  context->gpu = driver.gpus[device];
  context->board = &driver.machine->boards[context->gpu];
  context->flags = flags;
  context->api_version = api_version;
  context->id = atomic_fetch_add(&driver.machine->ids, 1) + 1;
  context->references = 1;
  pthread_mutex_init(&context->lock, NULL);
  set_limits(context);
  spend_creation_time();
  CUresult opened = open_on_gpu(context);
  if (opened == CUDA_SUCCESS) opened = open_parts(context);
  if (opened != CUDA_SUCCESS) {
    pthread_mutex_destroy(&context->lock);
    free(context);
    return opened;
  }
  pthread_mutex_lock(&contexts_lock);
  context->next = contexts;
  contexts = context;
  pthread_mutex_unlock(&contexts_lock);
  *result = context;
  return CUDA_SUCCESS;
}

void context_close(CUcontext context) {
  struct sim_machine *machine = driver.machine;
  context_synchronize(context);
  context->destroyed = true;
  for (size_t i = 0; i < CONTEXT_PARTS; i++)
    if (parts[i]->close != NULL) parts[i]->close(context);
  sim_model_enter(machine, context->gpu);
  sim_model_close_tenant(&context->board->model, machine->events, context->tenant);
  sim_model_leave(machine, context->gpu);
  atomic_fetch_sub(&machine->processes[driver.process].contexts[context->gpu], 1);
  sim_ledger_give(machine, driver.process, context->gpu, machine->node.context_bytes + context->limit_bytes);
}

/* Additional memory that a limit needs beyond the initial allocation of the context. */
static uint64_t bytes_of(const struct CUctx_st *context, CUlimit limit, size_t value) {
  size_t first = context->first_limits[limit];
  uint64_t threads = (uint64_t)driver_gpu(context->device)->sms * THREADS_OF_SM;
  if (value <= first) return 0;
  switch (limit) {
  case CU_LIMIT_STACK_SIZE:
    return (value - first) * threads;
  case CU_LIMIT_PRINTF_FIFO_SIZE:
  case CU_LIMIT_MALLOC_HEAP_SIZE:
    return value - first;
  default:
    return 0;
  }
}

CUresult context_set_limit(CUcontext context, CUlimit limit, size_t value) {
  uint64_t before = bytes_of(context, limit, context->limits[limit]), after = bytes_of(context, limit, value);
  if (after > before && !sim_ledger_take(driver.machine, driver.process, context->gpu, after - before))
    return CUDA_ERROR_OUT_OF_MEMORY;
  if (after < before) sim_ledger_give(driver.machine, driver.process, context->gpu, before - after);
  context->limits[limit] = value;
  context->limit_bytes += after - before;
  return CUDA_SUCCESS;
}

bool context_is_idle(CUcontext context) {
  const struct sim_model *gpu = &context->board->model;
  for (uint32_t word = 0; word < SIM_CHANNEL_WORDS; word++) {
    for (uint64_t bits = atomic_load(&gpu->busy[word]); bits != 0; bits &= bits - 1)
      if (gpu->channels[word * 64 + (uint32_t)__builtin_ctzll(bits)].tenant == context->tenant) return false;
  }
  return true;
}

CUresult context_synchronize(CUcontext context) {
  for (size_t i = 0; i < CONTEXT_PARTS; i++)
    if (parts[i]->wait != NULL) TRY(parts[i]->wait(context));
  for (size_t i = 0; i < CONTEXT_PARTS; i++)
    if (parts[i]->settle != NULL) parts[i]->settle(context);
  return driver_context_health(context);
}
