/*
 * Measures the overhead of the control library per call. Batches of calls through the library and batches of calls to
 * the driver below it alternate in one process, on the same GPU and in the same state. Prints one line per pair of
 * batches: "<what> <hooked ns> <direct ns>" per call.
 *
 *     hook LIBCUDA BATCHES [COLD_KIB]
 *
 * COLD_KIB: also measures single calls after so much other memory was written ("cold-<what>"), as a program does that
 * works between its calls: the caches hold nothing of the library or the driver then.
 *
 * With two GPUs, launches into a stream of the first one are measured too, while the context of the second is current.
 */
#include "cuda_abi.h"
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define LAUNCHES 400
#define PAIRS 200
#define COPIED_BYTES 4096
#define COLD_CALLS 20
/* So many fewer batches of calls with cold caches. */
#define COLD_PART 40
#define CACHE_LINE 64

static const char kernels[] = ".version 7.0\n.target sm_70\n.address_size 64\n.visible .entry busy_ns_100() { ret; }\n";

struct calls {
  __typeof__(&cuLaunchKernel) launch;
  __typeof__(&cuMemAlloc_v2) allocate;
  __typeof__(&cuMemFree_v2) release;
  __typeof__(&cuMemcpyDtoDAsync_v2) copy;
  __typeof__(&cuMemsetD8Async) fill;
};

static CUfunction function;
static CUdeviceptr source, target;
static CUstream stream;
static __typeof__(&cuCtxSynchronize) synchronize;
static __typeof__(&cuStreamSynchronize) wait_for_stream;

static void die(const char *what, int code) {
  fprintf(stderr, "hook: %s: %d\n", what, code);
  exit(1);
}

static void ok(CUresult result, const char *what) {
  if (result != CUDA_SUCCESS) die(what, (int)result);
}

static void *symbol(void *library, const char *name) {
  void *found = dlsym(library, name);
  if (found == NULL) die(name, 0);
  return found;
}

static uint64_t now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000000ull + (uint64_t)now.tv_nsec;
}

static double launches(const struct calls *calls) {
  uint64_t from = now_ns();
  for (int i = 0; i < LAUNCHES; i++)
    ok(calls->launch(function, 1, 1, 1, 32, 1, 1, 0, NULL, NULL, NULL), "launch");
  uint64_t took = now_ns() - from;
  ok(synchronize(), "synchronize");
  return (double)took / LAUNCHES;
}

static double foreign_launches(const struct calls *calls) {
  uint64_t from = now_ns();
  for (int i = 0; i < LAUNCHES; i++)
    ok(calls->launch(function, 1, 1, 1, 32, 1, 1, 0, stream, NULL, NULL), "launch");
  uint64_t took = now_ns() - from;
  ok(wait_for_stream(stream), "synchronize");
  return (double)took / LAUNCHES;
}

static double copies(const struct calls *calls) {
  uint64_t from = now_ns();
  for (int i = 0; i < LAUNCHES; i++)
    ok(calls->copy(target, source, COPIED_BYTES, NULL), "copy");
  uint64_t took = now_ns() - from;
  ok(synchronize(), "synchronize");
  return (double)took / LAUNCHES;
}

static double fills(const struct calls *calls) {
  uint64_t from = now_ns();
  for (int i = 0; i < LAUNCHES; i++)
    ok(calls->fill(target, 0, COPIED_BYTES, NULL), "fill");
  uint64_t took = now_ns() - from;
  ok(synchronize(), "synchronize");
  return (double)took / LAUNCHES;
}

static double pairs(const struct calls *calls) {
  CUdeviceptr pointer;
  uint64_t from = now_ns();
  for (int i = 0; i < PAIRS; i++) {
    ok(calls->allocate(&pointer, 65536), "allocate");
    ok(calls->release(pointer), "free");
  }
  return (double)(now_ns() - from) / PAIRS;
}

static volatile char *evicting;
static size_t evicting_bytes;

static void evict(void) {
  for (size_t i = 0; i < evicting_bytes; i += CACHE_LINE)
    evicting[i]++;
}

static double cold_launches(const struct calls *calls) {
  uint64_t took = 0;
  for (int i = 0; i < COLD_CALLS; i++) {
    evict();
    uint64_t from = now_ns();
    ok(calls->launch(function, 1, 1, 1, 32, 1, 1, 0, NULL, NULL, NULL), "launch");
    took += now_ns() - from;
  }
  ok(synchronize(), "synchronize");
  return (double)took / COLD_CALLS;
}

static double cold_pairs(const struct calls *calls) {
  CUdeviceptr pointer;
  uint64_t took = 0;
  for (int i = 0; i < COLD_CALLS; i++) {
    evict();
    uint64_t from = now_ns();
    ok(calls->allocate(&pointer, 65536), "allocate");
    took += now_ns() - from;
    evict();
    from = now_ns();
    ok(calls->release(pointer), "free");
    took += now_ns() - from;
  }
  return (double)took / COLD_CALLS;
}

static void measure(const char *what, double (*batch)(const struct calls *), const struct calls *hooked,
                    const struct calls *direct, int batches) {
  for (int i = 0; i < 20; i++) {
    batch(hooked);
    batch(direct);
  }
  for (int i = 0; i < batches; i++) {
    /* Caches are warm for the second batch, so the order of the batches alternates as well. */
    double first = batch(i % 2 ? hooked : direct);
    double second = batch(i % 2 ? direct : hooked);
    printf("%s %.3f %.3f\n", what, i % 2 ? first : second, i % 2 ? second : first);
  }
}

static struct calls calls_of(void *library) {
  return (struct calls){
      .launch = (__typeof__(&cuLaunchKernel))symbol(library, "cuLaunchKernel"),
      .allocate = (__typeof__(&cuMemAlloc_v2))symbol(library, "cuMemAlloc_v2"),
      .release = (__typeof__(&cuMemFree_v2))symbol(library, "cuMemFree_v2"),
      .copy = (__typeof__(&cuMemcpyDtoDAsync_v2))symbol(library, "cuMemcpyDtoDAsync_v2"),
      .fill = (__typeof__(&cuMemsetD8Async))symbol(library, "cuMemsetD8Async"),
  };
}

int main(int argc, char **argv) {
  if (argc != 3 && argc != 4) die("usage: hook LIBCUDA BATCHES [COLD_KIB]", argc);
  void *control = dlopen(argv[1], RTLD_NOW | RTLD_GLOBAL);
  if (control == NULL) die(dlerror(), 0);
  void *origin = dlopen("libcuda-origin.so.1", RTLD_NOW | RTLD_NOLOAD);
  if (origin == NULL) die("the driver is not behind the library", 0);
  CUcontext context;
  CUmodule module;
  ok(((__typeof__(&cuInit))symbol(control, "cuInit"))(0), "cuInit");
  ok(((__typeof__(&cuCtxCreate_v2))symbol(control, "cuCtxCreate_v2"))(&context, 0, 0), "context");
  ok(((__typeof__(&cuModuleLoadData))symbol(control, "cuModuleLoadData"))(&module, kernels), "module");
  ok(((__typeof__(&cuModuleGetFunction))symbol(control, "cuModuleGetFunction"))(&function, module, "busy_ns_100"),
     "kernel");
  synchronize = (__typeof__(&cuCtxSynchronize))symbol(origin, "cuCtxSynchronize");
  struct calls hooked = calls_of(control), direct = calls_of(origin);
  measure("launch", launches, &hooked, &direct, atoi(argv[2]));
  measure("allocate", pairs, &hooked, &direct, atoi(argv[2]));
  ok(hooked.allocate(&source, COPIED_BYTES), "allocate");
  ok(hooked.allocate(&target, COPIED_BYTES), "allocate");
  measure("copy", copies, &hooked, &direct, atoi(argv[2]));
  measure("fill", fills, &hooked, &direct, atoi(argv[2]));
  if (argc == 4) {
    evicting_bytes = (size_t)atol(argv[3]) * 1024;
    evicting = calloc(1, evicting_bytes);
    if (evicting == NULL) die("memory", 0);
    int batches = (atoi(argv[2]) + COLD_PART - 1) / COLD_PART;
    measure("cold-launch", cold_launches, &hooked, &direct, batches);
    measure("cold-allocate", cold_pairs, &hooked, &direct, batches);
  }
  int count = 0;
  ok(((__typeof__(&cuDeviceGetCount))symbol(control, "cuDeviceGetCount"))(&count), "count");
  if (count < 2) return 0;
  wait_for_stream = (__typeof__(&cuStreamSynchronize))symbol(origin, "cuStreamSynchronize");
  ok(((__typeof__(&cuStreamCreate))symbol(control, "cuStreamCreate"))(&stream, CU_STREAM_NON_BLOCKING), "stream");
  ok(((__typeof__(&cuCtxCreate_v2))symbol(control, "cuCtxCreate_v2"))(&context, 0, 1), "context");
  measure("foreign", foreign_launches, &hooked, &direct, atoi(argv[2]));
  return 0;
}
