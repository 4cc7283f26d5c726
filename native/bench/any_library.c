/*
 * One GPU program that runs behind any library that limits GPUs. It finds the driver's functions as the CUDA runtime
 * does: with dlsym in libcuda.so.1, and those that the library in front of the driver does not export with
 * cuGetProcAddress.
 *
 *     any_library cost PAUSE_US            for each line of its input: prints the ns of a launch, and of an allocation
 *                                          with its release (mean of a batch)
 *     any_library tenant SECONDS PATTERN   launches: async:US, or grid:US:BLOCKS (kernels of BLOCKS blocks)
 *     any_library fill KIND CHUNK_MIB MOST_MIB WAIT_MS   allocates until it is refused, prints what it got in MiB and
 *                                          the result, and holds it until its input ends
 *     any_library race FILE MIB SECONDS LIMIT_MIB N
 *                                          allocates and frees against other processes, once N of them have contexts;
 *                                          FILE counts what all of them hold
 *     any_library start                    creates a context and loads a module
 *     any_library many N PROGRAM ...       starts N programs at once; prints the ms until the last one has ended, and
 *                                          how many failed
 */
#include "cuda_abi.h"
#include <dlfcn.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { LAUNCHES = 400, WARM_UP_LAUNCHES = 100, PAIRS = 200, WARM_UP_PAIRS = 20 };
enum { RACE_HOLD_US = 100, RACE_REST_US = 50 };

extern char **environ;

static const char kernels[] =
    ".version 7.0\n.target sm_70\n.address_size 64\n"
    ".visible .entry busy_ns_100() { ret; }\n.visible .entry busy_us(.param .u64 us) { ret; }\n";

static void *driver;
static CUdevice device;
static CUcontext context;
static CUmodule module;
static int multiprocessors;

static void die(const char *what, int code) {
  fprintf(stderr, "any_library: %s: %d\n", what, code);
  exit(1);
}

static void ok(CUresult result, const char *what) {
  if (result != CUDA_SUCCESS) die(what, (int)result);
}

static uint64_t now_ns(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (uint64_t)time.tv_sec * 1000000000ull + (uint64_t)time.tv_nsec;
}

static void rest_us(uint64_t us) {
  struct timespec time = {(time_t)(us / 1000000), (long)(us % 1000000 * 1000)};
  nanosleep(&time, NULL);
}

/* The name as cuGetProcAddress knows it: without the version. */
static void *by_proc_address(const char *symbol) {
  static CUresult (*proc_address)(const char *, void **, int, cuuint64_t);
  char name[64];
  void *found = NULL;
  if (proc_address == NULL)
    proc_address = (CUresult(*)(const char *, void **, int, cuuint64_t))dlsym(driver, "cuGetProcAddress");
  snprintf(name, sizeof name, "%s", symbol);
  char *version = strstr(name, "_v2");
  if (version != NULL) *version = 0;
  return proc_address != NULL && proc_address(name, &found, 12000, 0) == CUDA_SUCCESS ? found : NULL;
}

static void *find(const char *symbol) {
  void *found = dlsym(driver, symbol);
  if (found == NULL) found = by_proc_address(symbol);
  if (found == NULL) die(symbol, 0);
  return found;
}

/* The driver's function of that name, looked up at its first call. */
#define DRIVER(name)                                                                                                   \
  ({                                                                                                                   \
    static __typeof__(&name) looked_up;                                                                                \
    if (looked_up == NULL) looked_up = (__typeof__(&name))find(#name);                                                 \
    looked_up;                                                                                                         \
  })

/* Uses the primary context, as the CUDA runtime does. */
static void begin(void) {
  driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
  if (driver == NULL) die(dlerror(), 0);
  ok(DRIVER(cuInit)(0), "cuInit");
  ok(DRIVER(cuDeviceGet)(&device, 0), "cuDeviceGet");
  ok(DRIVER(cuDeviceGetAttribute)(&multiprocessors, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, device), "attribute");
  ok(DRIVER(cuDevicePrimaryCtxRetain)(&context, device), "context");
  ok(DRIVER(cuCtxSetCurrent)(context), "context");
  ok(DRIVER(cuModuleLoadData)(&module, kernels), "module");
}

static CUfunction kernel(const char *name) {
  CUfunction function;
  ok(DRIVER(cuModuleGetFunction)(&function, module, name), name);
  return function;
}

static CUstream new_stream(void) {
  CUstream stream;
  ok(DRIVER(cuStreamCreate)(&stream, CU_STREAM_NON_BLOCKING), "stream");
  return stream;
}

static int cost(uint64_t pause_us) {
  CUfunction function = kernel("busy_ns_100");
  __typeof__(&cuLaunchKernel) go = DRIVER(cuLaunchKernel);
  __typeof__(&cuMemAlloc_v2) allocate = DRIVER(cuMemAlloc_v2);
  __typeof__(&cuMemFree_v2) release = DRIVER(cuMemFree_v2);
  char line[16];
  while (fgets(line, sizeof line, stdin) != NULL) {
    uint64_t from = 0;
    /* Another program ran before this one, so the first calls must fill the caches again. */
    for (int i = -WARM_UP_LAUNCHES; i < LAUNCHES; i++) {
      if (i == 0) from = now_ns();
      ok(go(function, 1, 1, 1, 32, 1, 1, 0, NULL, NULL, NULL), "launch");
    }
    double launch = (double)(now_ns() - from) / LAUNCHES;
    ok(DRIVER(cuCtxSynchronize)(), "synchronize");
    rest_us(pause_us);
    for (int i = -WARM_UP_PAIRS; i < PAIRS; i++) {
      CUdeviceptr pointer;
      if (i == 0) from = now_ns();
      ok(allocate(&pointer, 65536), "allocate");
      ok(release(pointer), "free");
    }
    printf("%.1f %.1f\n", launch, (double)(now_ns() - from) / PAIRS);
    fflush(stdout);
  }
  return 0;
}

static int tenant(double seconds, const char *pattern) {
  unsigned int us = 0, blocks = (unsigned int)multiprocessors;
  if (sscanf(pattern, "async:%u", &us) != 1 && sscanf(pattern, "grid:%u:%u", &us, &blocks) != 2) return 2;
  CUfunction function = kernel("busy_us");
  CUstream stream = new_stream();
  uint64_t time_us = us, end = now_ns() + (uint64_t)(seconds * 1e9);
  void *arguments[] = {&time_us};
  __typeof__(&cuLaunchKernel) go = DRIVER(cuLaunchKernel);
  while (now_ns() < end)
    ok(go(function, blocks, 1, 1, 128, 1, 1, 0, stream, arguments, NULL), "launch");
  _Exit(0);
}

/* Creates memory that other processes may open, opens it again, and releases the first handle. */
static CUresult take_exported(size_t bytes, CUmemAllocationProp prop) {
  CUmemGenericAllocationHandle handle = 0, opened = 0;
  int descriptor = -1;
  prop.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  CUresult result = DRIVER(cuMemCreate)(&handle, bytes, &prop, 0);
  if (result != CUDA_SUCCESS) return result;
  CUmemAllocationHandleType type = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  ok(DRIVER(cuMemExportToShareableHandle)(&descriptor, handle, type, 0), "export");
  result = DRIVER(cuMemImportFromShareableHandle)(&opened, (void *)(uintptr_t)descriptor, type);
  ok(DRIVER(cuMemRelease)(handle), "release");
  close(descriptor);
  return result;
}

static CUresult take_from_pool(size_t bytes, CUstream stream) {
  static CUmemoryPool pool;
  CUdeviceptr pointer;
  if (pool == NULL) {
    CUmemPoolProps props = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                            .location = {CU_MEM_LOCATION_TYPE_DEVICE, device}};
    CUresult result = DRIVER(cuMemPoolCreate)(&pool, &props);
    if (result != CUDA_SUCCESS) return result;
  }
  return DRIVER(cuMemAllocFromPoolAsync)(&pointer, bytes, pool, stream);
}

static CUresult take_graph_node(size_t bytes, CUstream stream) {
  CUgraph graph = NULL;
  CUgraphExec exec = NULL;
  CUgraphNode node = NULL;
  CUDA_MEM_ALLOC_NODE_PARAMS params = {
      .poolProps = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED, .location = {CU_MEM_LOCATION_TYPE_DEVICE, device}},
      .bytesize = bytes};
  ok(DRIVER(cuGraphCreate)(&graph, 0), "graph");
  CUresult result = DRIVER(cuGraphAddMemAllocNode)(&node, graph, NULL, 0, &params);
  if (result == CUDA_SUCCESS) result = DRIVER(cuGraphInstantiateWithFlags)(&exec, graph, 0);
  if (result == CUDA_SUCCESS) result = DRIVER(cuGraphLaunch)(exec, stream);
  return result == CUDA_SUCCESS ? DRIVER(cuStreamSynchronize)(stream) : result;
}

/* Allocates `bytes` in one of the ways that CUDA has. An image is 2048 texels of 16 bytes wide. */
static CUresult take(const char *kind, size_t bytes, CUstream stream) {
  enum { WIDTH = 2048, TEXEL = 16 };
  CUdeviceptr pointer;
  CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED, .location = {CU_MEM_LOCATION_TYPE_DEVICE, device}};
  CUDA_ARRAY_DESCRIPTOR flat = {WIDTH, bytes / WIDTH / TEXEL, CU_AD_FORMAT_FLOAT, 4};
  CUDA_ARRAY3D_DESCRIPTOR image = {flat.Width, flat.Height, 0, CU_AD_FORMAT_FLOAT, 4, 0};
  if (strcmp(kind, "alloc") == 0) return DRIVER(cuMemAlloc_v2)(&pointer, bytes);
  if (strcmp(kind, "pitch") == 0) {
    size_t pitch;
    return DRIVER(cuMemAllocPitch_v2)(&pointer, &pitch, bytes / 1024, 1024, 16);
  }
  if (strcmp(kind, "managed") == 0) return DRIVER(cuMemAllocManaged)(&pointer, bytes, CU_MEM_ATTACH_GLOBAL);
  if (strcmp(kind, "async") == 0) return DRIVER(cuMemAllocAsync)(&pointer, bytes, stream);
  if (strcmp(kind, "pool") == 0) return take_from_pool(bytes, stream);
  if (strcmp(kind, "vmm") == 0) {
    CUmemGenericAllocationHandle handle;
    return DRIVER(cuMemCreate)(&handle, bytes, &prop, 0);
  }
  if (strcmp(kind, "export") == 0) return take_exported(bytes, prop);
  if (strcmp(kind, "array2d") == 0) {
    CUarray array;
    return DRIVER(cuArrayCreate_v2)(&array, &flat);
  }
  if (strcmp(kind, "array3d") == 0) {
    CUarray array;
    return DRIVER(cuArray3DCreate_v2)(&array, &image);
  }
  if (strcmp(kind, "mipmap") == 0) {
    CUmipmappedArray array;
    return DRIVER(cuMipmappedArrayCreate)(&array, &image, 4);
  }
  if (strcmp(kind, "graphnode") == 0) return take_graph_node(bytes, stream);
  die(kind, 0);
  return CUDA_ERROR_INVALID_VALUE;
}

static int fill(const char *kind, size_t chunk, size_t most, uint64_t wait_ms) {
  CUstream stream = new_stream();
  CUresult result = CUDA_SUCCESS;
  size_t got = 0;
  rest_us(wait_ms * 1000);
  while (got < most && (result = take(kind, chunk, stream)) == CUDA_SUCCESS)
    got += chunk;
  printf("%zu %d\n", got >> 20, (int)result);
  fflush(stdout);
  for (char byte; read(0, &byte, 1) > 0;)
    ;
  _Exit(0);
}

/* The bytes that all racing processes hold, as they count them, and the numbers of their calls. */
struct race {
  _Atomic int64_t held, most, over, got, refused, other, ready;
};

/* A library may refuse a context: no program waits longer for the others. */
enum { RACE_START_MS = 5000 };

static int race(const char *path, size_t bytes, double seconds, int64_t limit, int64_t processes) {
  int file = open(path, O_RDWR | O_CREAT, 0666);
  if (file < 0 || ftruncate(file, sizeof(struct race)) != 0) die(path, 0);
  struct race *all = mmap(NULL, sizeof *all, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (all == MAP_FAILED) die(path, 0);
  __typeof__(&cuMemAlloc_v2) allocate = DRIVER(cuMemAlloc_v2);
  __typeof__(&cuMemFree_v2) release = DRIVER(cuMemFree_v2);
  unsigned int seed = (unsigned int)getpid();
  all->ready++;
  for (int waited = 0; all->ready < processes && waited < RACE_START_MS; waited++)
    rest_us(1000);
  for (uint64_t end = now_ns() + (uint64_t)(seconds * 1e9); now_ns() < end;) {
    CUdeviceptr pointer;
    CUresult result = allocate(&pointer, bytes);
    if (result == CUDA_SUCCESS) {
      int64_t held = (all->held += (int64_t)bytes), most = all->most;
      all->got++;
      if (held > limit) all->over++;
      while (held > most &&
             !__atomic_compare_exchange_n(&all->most, &most, held, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
        ;
      rest_us((uint64_t)rand_r(&seed) % RACE_HOLD_US);
      all->held -= (int64_t)bytes;
      ok(release(pointer), "free");
    } else if (result == CUDA_ERROR_OUT_OF_MEMORY) {
      all->refused++;
    } else {
      all->other++;
    }
    rest_us((uint64_t)rand_r(&seed) % RACE_REST_US);
  }
  return 0;
}

static int many(int count, char **program) {
  uint64_t from = now_ns();
  int failed = 0;
  for (int i = 0; i < count; i++) {
    pid_t pid;
    if (posix_spawn(&pid, program[0], NULL, NULL, program, environ) != 0) die("spawn", i);
  }
  for (int i = 0; i < count; i++) {
    int status;
    wait(&status);
    failed += status != 0;
  }
  printf("%.2f %d\n", (double)(now_ns() - from) / 1e6, failed);
  return 0;
}

int main(int argc, char **argv) {
  const char *what = argc > 1 ? argv[1] : "";
  if (strcmp(what, "many") == 0 && argc >= 4) return many(atoi(argv[2]), argv + 3);
  begin();
  if (strcmp(what, "cost") == 0 && argc == 3) return cost(strtoull(argv[2], NULL, 10));
  if (strcmp(what, "tenant") == 0 && argc == 4) return tenant(atof(argv[2]), argv[3]);
  if (strcmp(what, "fill") == 0 && argc == 6)
    return fill(argv[2], strtoull(argv[3], NULL, 10) << 20, strtoull(argv[4], NULL, 10) << 20,
                strtoull(argv[5], NULL, 10));
  if (strcmp(what, "race") == 0 && argc == 7)
    return race(argv[2], strtoull(argv[3], NULL, 10) << 20, atof(argv[4]), strtoll(argv[5], NULL, 10) << 20,
                strtoll(argv[6], NULL, 10));
  if (strcmp(what, "start") == 0 && argc == 2) return 0;
  fprintf(stderr, "usage: any_library cost|tenant|fill|race|start|many ...\n");
  return 2;
}
