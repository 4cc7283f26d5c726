/* Makes every call of device_sources.def on each combination of current context and stream, and checks which GPU of the
 * slice is charged. control_device_one.c and control_device_two.c do this on machines with one and two GPUs. */
#ifndef DEVICE_SOURCES_H
#define DEVICE_SOURCES_H

#include "gpu.h"
#include <pthread.h>
#include <stdbool.h>

#define BYTES (2 * MIB)
#define COUNT 1024
#define NOWHERE (-1)

/* What the calls use on one GPU. */
struct objects {
  CUcontext context;
  CUstream stream;
  CUfunction kernel;
  uint64_t us;
  void *parameters[1];
  CUdeviceptr to, from;
  CUarray array;
  CUgraphExec graph;
  CUmemoryPool pool;
  CUmemAllocationProp located;
  CUDA_LAUNCH_PARAMS part;
  CUDA_MEMCPY2D plane;
  CUDA_MEMCPY2D_v1 narrow_plane;
  CUDA_MEMCPY3D volume;
  CUDA_MEMCPY3D_v1 narrow_volume;
  CUDA_MEMCPY3D_PEER peers;
  /* results */
  CUdeviceptr made;
  size_t pitch;
  CUarray made_array;
  CUmipmappedArray made_mipmap;
  CUexternalMemory made_external;
  CUmemGenericAllocationHandle made_handle;
};

static const char *const uuids[] = {
    "GPU-aaaaaaaa-0000-0000-0000-000000000000",
    "GPU-bbbbbbbb-0000-0000-0000-000000000000",
};
static struct objects of_gpu[2];
static int gpus;
static struct vgpu_usage *usage;

/* The simulated driver does not read the attributes. */
static CUmemcpyAttributes *const attributes;
static size_t count = COUNT, first;
static const CUDA_ARRAY_DESCRIPTOR flat = {
    .Width = 1024, .Height = 512, .Format = CU_AD_FORMAT_FLOAT, .NumChannels = 1};
static const CUDA_ARRAY3D_DESCRIPTOR deep = {
    .Width = 64, .Height = 64, .Depth = 128, .Format = CU_AD_FORMAT_FLOAT, .NumChannels = 1};

/* The driver closes the descriptor of memory that it has imported. */
static const CUDA_EXTERNAL_MEMORY_HANDLE_DESC *external(void) {
  static CUDA_EXTERNAL_MEMORY_HANDLE_DESC description = {.type = CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD,
                                                         .size = BYTES};
  description.handle.fd = memfd_create("external", MFD_CLOEXEC);
  REQUIRE(description.handle.fd >= 0 && ftruncate(description.handle.fd, BYTES) == 0);
  return &description;
}

#define HOST(pointer) ((void *)(uintptr_t)(pointer))

static const CUlaunchConfig *config(CUstream stream) {
  static CUlaunchConfig one = {
      .gridDimX = 1, .gridDimY = 1, .gridDimZ = 1, .blockDimX = 1, .blockDimY = 1, .blockDimZ = 1};
  one.hStream = stream;
  return &one;
}

static CUDA_LAUNCH_PARAMS *part(struct objects *a, CUstream stream) {
  a->part = (CUDA_LAUNCH_PARAMS){
      .function = a->kernel,
      .gridDimX = 1,
      .gridDimY = 1,
      .gridDimZ = 1,
      .blockDimX = 1,
      .blockDimY = 1,
      .blockDimZ = 1,
      .hStream = stream,
      .kernelParams = a->parameters,
  };
  return &a->part;
}

static CUDA_MEMCPY3D_BATCH_OP *operands(const struct objects *a) {
  static CUDA_MEMCPY3D_BATCH_OP one = {
      .src.type = CU_MEMCPY_OPERAND_TYPE_POINTER, .dst.type = CU_MEMCPY_OPERAND_TYPE_POINTER, .extent = {64, 4, 2}};
  one.src.op.ptr.ptr = a->from;
  one.dst.op.ptr.ptr = a->to;
  return &one;
}

static CUDA_FABRIC_COPY_BATCH_OP *fabric_copy(const struct objects *a) {
  static CUDA_FABRIC_COPY_BATCH_OP one = {
      .src.type = CU_FABRIC_COPY_OPERAND_TYPE_POINTER, .dst.type = CU_FABRIC_COPY_OPERAND_TYPE_POINTER, .size = COUNT};
  one.src.op.ptr.ptr = a->from;
  one.dst.op.ptr.ptr = a->to;
  return &one;
}

/* The next allocation must let the pool grow again. */
static CUresult free_pooled(const struct objects *a) {
  CUresult result = cuMemFree_v2(a->made);
  for (int gpu = 0; gpu < gpus; gpu++) {
    CUmemoryPool pool;
    cuDeviceGetMemPool(&pool, gpu);
    cuMemPoolTrimTo(pool, 0);
    cuMemPoolTrimTo(of_gpu[gpu].pool, 0);
  }
  return result;
}

static void make_copies(struct objects *a) {
  a->plane = (CUDA_MEMCPY2D){.srcMemoryType = CU_MEMORYTYPE_DEVICE,
                             .srcDevice = a->from,
                             .srcPitch = 512,
                             .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                             .dstDevice = a->to,
                             .dstPitch = 512,
                             .WidthInBytes = 256,
                             .Height = 4};
  a->narrow_plane = (CUDA_MEMCPY2D_v1){
      .srcMemoryType = CU_MEMORYTYPE_DEVICE, .dstMemoryType = CU_MEMORYTYPE_DEVICE, .WidthInBytes = 256, .Height = 4};
  a->volume = (CUDA_MEMCPY3D){.srcMemoryType = CU_MEMORYTYPE_DEVICE,
                              .srcDevice = a->from,
                              .srcPitch = 512,
                              .srcHeight = 4,
                              .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                              .dstDevice = a->to,
                              .dstPitch = 512,
                              .dstHeight = 4,
                              .WidthInBytes = 256,
                              .Height = 4,
                              .Depth = 2};
  a->narrow_volume = (CUDA_MEMCPY3D_v1){.srcMemoryType = CU_MEMORYTYPE_DEVICE,
                                        .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                                        .WidthInBytes = 256,
                                        .Height = 4,
                                        .Depth = 2};
  a->peers = (CUDA_MEMCPY3D_PEER){.srcMemoryType = CU_MEMORYTYPE_DEVICE,
                                  .srcDevice = a->from,
                                  .srcContext = a->context,
                                  .srcPitch = 512,
                                  .srcHeight = 4,
                                  .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                                  .dstDevice = a->to,
                                  .dstContext = a->context,
                                  .dstPitch = 512,
                                  .dstHeight = 4,
                                  .WidthInBytes = 256,
                                  .Height = 4,
                                  .Depth = 2};
}

static void make_graph(struct objects *a) {
  CUgraph graph;
  OK(cuStreamBeginCapture_v2(a->stream, CU_STREAM_CAPTURE_MODE_RELAXED));
  OK(gpu_launch(a->kernel, 1, a->stream));
  OK(cuStreamEndCapture(a->stream, &graph));
  OK(cuGraphInstantiateWithFlags(&a->graph, graph, 0));
  OK(cuGraphDestroy(graph));
}

static void open_gpu(int gpu) {
  struct objects *a = &of_gpu[gpu];
  CUmodule module;
  OK(cuCtxCreate_v2(&a->context, 0, gpu));
  OK(cuStreamCreate(&a->stream, CU_STREAM_NON_BLOCKING));
  OK(cuModuleLoadData(&module, gpu_kernels()));
  OK(cuModuleGetFunction(&a->kernel, module, "busy_us_1"));
  a->parameters[0] = &a->us;
  OK(cuMemAlloc_v2(&a->to, BYTES));
  OK(cuMemAlloc_v2(&a->from, BYTES));
  OK(cuArrayCreate_v2(&a->array, &flat));
  a->located =
      (CUmemAllocationProp){.type = CU_MEM_ALLOCATION_TYPE_PINNED, .location = {CU_MEM_LOCATION_TYPE_DEVICE, gpu}};
  CUmemPoolProps properties = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED, .location = a->located.location};
  OK(cuMemPoolCreate(&a->pool, &properties));
  make_copies(a);
  make_graph(a);
}

/* ---- one call ---- */

enum source { CURRENT, STREAM, NAMED };

struct row {
  const char *symbol;
  enum source source;
  bool memory; /* charges memory instead of GPU time */
  CUresult (*call)(struct objects *a, CUstream stream);
  CUresult (*undo)(struct objects *a);
};

#define TIME(source, symbol, arguments)                                                                                \
  static CUresult call_##symbol(struct objects *a, CUstream stream) {                                                  \
    (void)a, (void)stream;                                                                                             \
    return symbol arguments;                                                                                           \
  }
#define MEMORY(source, symbol, arguments, undo)                                                                        \
  TIME(source, symbol, arguments)                                                                                      \
  static CUresult undo_##symbol(struct objects *a) {                                                                   \
    (void)a;                                                                                                           \
    return undo;                                                                                                       \
  }
#define FREE(symbol)
#include "device_sources.def"

#define TIME(source, symbol, arguments) {#symbol, source, false, call_##symbol, NULL},
#define MEMORY(source, symbol, arguments, undo) {#symbol, source, true, call_##symbol, undo_##symbol},
#define FREE(symbol)
static const struct row rows[] = {
#include "device_sources.def"
};

#define TIME(source, symbol, arguments) #symbol,
#define MEMORY(source, symbol, arguments, undo) #symbol,
#define FREE(symbol) #symbol,
static const char *const listed[] = {
#include "device_sources.def"
};

#define LEGACY 0
#define PER_THREAD 0
#define CUDA_HOOK(since, name, symbol, ...) #symbol,
static const char *const hooks[] = {
#include "cuda_calls.def"
};

static void check_list(void) {
  for (size_t i = 0; i < sizeof hooks / sizeof *hooks; i++) {
    int times = 0;
    for (size_t j = 0; j < sizeof listed / sizeof *listed; j++)
      times += strcmp(hooks[i], listed[j]) == 0;
    if (times != 1) tap_fail(__FILE__, __LINE__, "%s is %d times in device_sources.def", hooks[i], times);
  }
  CHECK_EQ(sizeof listed / sizeof *listed, sizeof hooks / sizeof *hooks);
}

struct trial {
  const struct row *row;
  int gpu;     /* the GPU of explicit streams and named objects */
  int current; /* the GPU of the current context; NOWHERE: none is current */
  CUstream stream;
  bool is_explicit;
  /* results */
  CUresult result;
  uint64_t charged[2];
};

static uint64_t charge_of(const struct row *row, int gpu) {
  if (row->memory) return sandbox_held(usage, (uint32_t)gpu);
  return __atomic_load_n(&usage->devices[gpu].launches, __ATOMIC_RELAXED);
}

/* The GPU that must be charged. */
static int expected_gpu(const struct trial *trial) {
  if (trial->row->source == NAMED || (trial->row->source == STREAM && trial->is_explicit)) return trial->gpu;
  return trial->current;
}

/* A new thread has no tokens from earlier launches. Each of its launches therefore takes tokens from the bucket and is
 * counted there. */
static void *run_trial(void *argument) {
  struct trial *trial = argument;
  int gpu = expected_gpu(trial);
  struct objects *a = &of_gpu[gpu == NOWHERE ? trial->gpu : gpu];
  uint64_t before[2];
  OK(cuCtxSetCurrent(trial->current == NOWHERE ? NULL : of_gpu[trial->current].context));
  for (int i = 0; i < gpus; i++)
    before[i] = charge_of(trial->row, i);
  trial->result = trial->row->call(a, trial->stream);
  for (int i = 0; i < gpus; i++)
    trial->charged[i] = charge_of(trial->row, i) - before[i];
  if (trial->row->memory && trial->result == CUDA_SUCCESS) OK(trial->row->undo(a));
  return NULL;
}

static void check_trial(struct trial trial, const char *stream) {
  pthread_t thread;
  REQUIRE(pthread_create(&thread, NULL, run_trial, &trial) == 0);
  REQUIRE(pthread_join(thread, NULL) == 0);
  int gpu = expected_gpu(&trial);
  bool good = gpu != NOWHERE || (trial.result != CUDA_SUCCESS && trial.result != CUDA_ERROR_OUT_OF_MEMORY);
  for (int i = 0; i < gpus; i++) {
    /* With one GPU a launch may be charged before the driver rejects it. */
    bool any = gpus == 1 && gpu == NOWHERE && !trial.row->memory;
    good &= any || (trial.charged[i] > 0) == (i == gpu);
  }
  if (!good)
    tap_fail(__FILE__, __LINE__, "%s, objects of GPU %d, current %d, stream %s: %d, charged %llu and %llu",
             trial.row->symbol, trial.gpu, trial.current, stream, (int)trial.result,
             (unsigned long long)trial.charged[0], (unsigned long long)trial.charged[1]);
}

/* The driver accepts only explicit streams in some calls. Those that end in "_ptsz" take NULL for that of the thread.
 */
static bool takes_null_stream(const struct row *row) {
  static const char *const explicit[] = {"cuLaunchCooperativeKernelMultiDevice", "cuMemcpyBatchAsync",
                                         "cuMemcpyBatchAsync_v2", "cuMemcpy3DBatchAsync", "cuMemcpy3DBatchAsync_v2"};
  for (size_t i = 0; i < sizeof explicit / sizeof *explicit; i++)
    if (strcmp(row->symbol, explicit[i]) == 0) return false;
  return true;
}

static bool takes_legacy_stream(const struct row *row) {
  return strstr(row->symbol, "BatchAsync") == NULL || strstr(row->symbol, "Fabric") != NULL;
}

static void check_row(const struct row *row, int gpu, int current) {
  struct trial trial = {.row = row, .gpu = gpu, .current = current};
  if (row->source == CURRENT) {
    check_trial(trial, "none");
    return;
  }
  trial.is_explicit = true;
  trial.stream = of_gpu[gpu].stream;
  check_trial(trial, "explicit");
  trial.is_explicit = false;
  /* The memory of a named pool needs a stream, and so a context. */
  if (!takes_null_stream(row) || (row->source == NAMED && current == NOWHERE)) return;
  trial.stream = NULL;
  check_trial(trial, "NULL");
  if (takes_legacy_stream(row)) {
    trial.stream = CU_STREAM_LEGACY;
    check_trial(trial, "legacy");
  }
  trial.stream = CU_STREAM_PER_THREAD;
  check_trial(trial, "per thread");
}

/* A slice of `number` GPUs of the machine, each with its own limits. */
static void check_machine(int number) {
  check_list();
  sandbox_make();
  char path[512];
  sandbox_path(path, sizeof path, "node.json");
  FILE *file = fopen(path, "we");
  REQUIRE(file != NULL);
  fprintf(file, "{\"gpus\": [{\"uuid\": \"%s\"}", uuids[0]);
  if (number == 2) fprintf(file, ", {\"uuid\": \"%s\"}", uuids[1]);
  fprintf(file, "]}");
  fclose(file);
  setenv("GPU_SIM_NODE", path, 1);
  struct vgpu_limits *limits = sandbox_limits(uuids[0], 512 * MIB, 60, 0);
  limits->header.device_count = (uint32_t)number;
  snprintf(limits->devices[1].uuid, sizeof limits->devices[1].uuid, "%s", uuids[1]);
  limits->live[0][1] = (struct vgpu_device_live){.memory_limit_bytes = 256 * MIB, .share = 40};
  OK(cuInit(0));
  gpus = number;
  for (int gpu = 0; gpu < number; gpu++)
    open_gpu(gpu);
  usage = sandbox_usage();
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    for (int gpu = 0; gpu < number; gpu++)
      for (int current = NOWHERE; current < number; current++)
        check_row(&rows[i], gpu, current);
}

#endif
