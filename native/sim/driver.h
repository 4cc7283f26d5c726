/* Common to all calls of the simulated CUDA driver: the process's view of the machine, the current context, and the
 * checks at entry. */
#ifndef SIM_DRIVER_H
#define SIM_DRIVER_H

#include "cuda_abi.h"
#include "machine.h"

#include <pthread.h>

#define SIM_API __attribute__((visibility("default")))

enum { THREADS_OF_SM = 2048 };

struct driver {
  bool ready; /* cuInit has succeeded in this process; a child after fork cannot use the driver */
  uint32_t process;
  uint32_t count; /* devices selected by CUDA_VISIBLE_DEVICES */
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
  _Atomic bool reported;   /* the failure of the context was reported */
  unsigned int references; /* of the primary context, or from cuCtxAttach */
  struct sim_board *board;
  struct space_heap *heap; /* small allocations */
  struct CUstream_st *legacy;
  struct CUstream_st *streams; /* all except the legacy stream */
  pthread_mutex_t lock;        /* protects the list of streams */
  size_t limits[CU_LIMIT_CIG_SHMEM_FALLBACK_ENABLED + 1];
  size_t first_limits[CU_LIMIT_CIG_SHMEM_FALLBACK_ENABLED + 1];
  uint64_t limit_bytes; /* GPU memory for limits raised above their initial values */
  CUfunc_cache cache;
  CUsharedconfig shared;
  struct CUctx_st *next; /* list of all contexts */
};

/* Small on purpose: in the thread's static TLS block the current context is one load away. */
enum { THREAD_CONTEXTS = 24 };
struct thread {
  uint32_t depth;
  CUstreamCaptureMode capture_mode;
  CUcontext contexts[THREAD_CONTEXTS];
  CUcontext stream_context; /* context of the cached per-thread stream */
  CUstream stream;
};
extern __thread struct thread thread __attribute__((tls_model("initial-exec")));

CUresult driver_refuse(const char *call);
CUresult driver_context_health(CUcontext context);

static inline CUresult driver_enter(const char *call) {
  if (__builtin_expect(driver.ready && atomic_load_explicit(&driver.machine->exceptions, memory_order_relaxed) == 0, 1))
    return CUDA_SUCCESS;
  return driver_refuse(call);
}

/* The current context; an error if there is none or if it has failed. */
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

/* At the start of every call: waits while the process is locked or checkpointed, and returns injected faults, and an
 * error before cuInit. */
#define ENTER() TRY(driver_enter(__func__))

#define NEED(condition) TRY((condition) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE)

/* First version of contexts with 64-bit addresses and sizes, as cuCtxGetApiVersion shows it. */
enum { API_VERSION_WIDE = 3020 };

/* At the start of the calls of CUDA 2 that use memory: contexts of later versions refuse them. */
#define ENTER_NARROW()                                                                                                 \
  ENTER();                                                                                                             \
  TRY(driver_narrow())

static inline CUresult driver_narrow(void) {
  CUcontext context;
  TRY(driver_current(&context));
  return context->api_version >= API_VERSION_WIDE ? CUDA_ERROR_INVALID_CONTEXT : CUDA_SUCCESS;
}

static inline const struct sim_gpu *driver_gpu(CUdevice device) {
  return &driver.machine->node.gpus[driver.gpus[device]];
}

static inline bool driver_has(CUdevice device) {
  return device >= 0 && (uint32_t)device < driver.count;
}

#define NEED_DEVICE(device) TRY(driver_has(device) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE)

/* Default stream of a call that has a variant for the per-thread default stream. */
static inline CUstream own_stream(CUstream stream) {
  return stream == NULL ? CU_STREAM_PER_THREAD : stream;
}

/* Defines NAME_ptsz (or _ptds) with the given parameters, as a call of the plain function with other arguments. */
#define PER_THREAD_SZ(name, parameters, ...)                                                                           \
  SIM_API CUresult name##_ptsz parameters {                                                                            \
    return name(__VA_ARGS__);                                                                                          \
  }

#endif
