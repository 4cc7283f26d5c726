/*
 * What every call of the simulated CUDA driver needs: the process's view of the machine, the current context, and the
 * way in.
 */
#ifndef SIM_DRIVER_H
#define SIM_DRIVER_H

#include "cuda_abi.h"
#include "machine.h"

#include <pthread.h>

#define SIM_API __attribute__((visibility("default")))

enum { THREADS_OF_SM = 2048 };

struct driver {
  bool ready; /* cuInit has succeeded in this very process: a child after fork has to do without */
  uint32_t process;
  uint32_t count; /* devices, as CUDA_VISIBLE_DEVICES leaves them */
  uint32_t gpus[SIM_MAX_GPUS];
  struct sim_machine *machine;
};

extern struct driver driver;

struct CUctx_st {
  CUdevice device;
  uint32_t gpu;
  uint32_t tenant;
  unsigned int flags;
  unsigned int api_version;
  unsigned long long id;
  bool primary;
  bool destroyed;
  _Atomic bool reported;   /* that a kernel ended it */
  unsigned int references; /* of a primary context, or by cuCtxAttach */
  struct sim_board *board;
  struct space_heap *heap; /* small allocations */
  struct CUstream_st *legacy;
  struct CUstream_st *streams; /* all but the legacy one */
  pthread_mutex_t lock;        /* of the list of streams */
  size_t limits[CU_LIMIT_CIG_SHMEM_FALLBACK_ENABLED + 1];
  size_t first_limits[CU_LIMIT_CIG_SHMEM_FALLBACK_ENABLED + 1];
  uint64_t limit_bytes; /* that larger limits than the first ones take of the GPU */
  CUfunc_cache cache;
  CUsharedconfig shared;
  struct CUctx_st *next; /* of all contexts */
};

/* Small on purpose: it lies in the thread's static block, which makes the current context one load away. */
enum { THREAD_CONTEXTS = 24 };
struct thread {
  uint32_t depth;
  CUstreamCaptureMode capture_mode;
  CUcontext contexts[THREAD_CONTEXTS];
  CUcontext stream_context; /* whose per-thread stream is cached */
  CUstream stream;
};
extern __thread struct thread thread __attribute__((tls_model("initial-exec")));

CUresult driver_refuse(const char *call);
CUresult driver_context_health(CUcontext context);

static inline CUresult driver_enter(const char *call) {
  if (__builtin_expect(driver.ready && atomic_load_explicit(&driver.machine->fault_count, memory_order_relaxed) == 0,
                       1))
    return CUDA_SUCCESS;
  return driver_refuse(call);
}

/* The current context, healthy. */
static inline CUresult driver_current(CUcontext *context) {
  if (__builtin_expect(thread.depth == 0, 0)) return CUDA_ERROR_INVALID_CONTEXT;
  CUcontext current = thread.contexts[thread.depth - 1];
  if (__builtin_expect(current == NULL, 0)) return CUDA_ERROR_INVALID_CONTEXT;
  *context = current;
  if (__builtin_expect(
          !current->destroyed && atomic_load_explicit(&current->board->lost, memory_order_relaxed) == 0 &&
              atomic_load_explicit(&current->board->model.tenants[current->tenant].error, memory_order_relaxed) == 0,
          1))
    return CUDA_SUCCESS;
  return driver_context_health(current);
}

/* Returns from the call when `expression` is not CUDA_SUCCESS. */
#define TRY(expression)                                                                                                \
  do {                                                                                                                 \
    CUresult try_result = (expression);                                                                                \
    if (__builtin_expect(try_result != CUDA_SUCCESS, 0)) return try_result;                                            \
  } while (0)

/* How every call begins: errors on command, cuInit before anything else. */
#define ENTER() TRY(driver_enter(__func__))

#define NEED(condition) TRY((condition) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE)

static inline const struct sim_gpu *driver_gpu(CUdevice device) {
  return &driver.machine->node.gpus[driver.gpus[device]];
}

static inline bool driver_has(CUdevice device) {
  return device >= 0 && (uint32_t)device < driver.count;
}

#define NEED_DEVICE(device) TRY(driver_has(device) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE)

/* What a stream argument of a call with an own entry for the per-thread default stream means. */
static inline CUstream own_stream(CUstream stream) {
  return stream == NULL ? CU_STREAM_PER_THREAD : stream;
}

/* Defines NAME_ptsz (or _ptds) with the given parameters, as the plain call with other arguments. */
#define PER_THREAD_SZ(name, parameters, ...)                                                                           \
  SIM_API CUresult name##_ptsz parameters {                                                                            \
    return name(__VA_ARGS__);                                                                                          \
  }

#endif
