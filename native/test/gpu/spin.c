/*
 * A load generator for a real GPU: launches kernels of a given duration as fast as the library lets it, and prints the
 * number of kernels per second.
 *
 *     spin SECONDS KERNEL_US [sync]
 */
#include "cuda_abi.h"
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* A chain of dependent multiplications. Its duration is computation and not memory latency, so foreign time slices do
 * not shorten it. */
static const char ptx[] = ".version 7.0\n.target sm_70\n.address_size 64\n"
                          ".visible .entry spin(.param .u64 rounds, .param .u64 out) {\n"
                          "  .reg .pred %p<2>; .reg .u64 %rd<6>;\n"
                          "  ld.param.u64 %rd0, [rounds]; ld.param.u64 %rd1, [out]; mov.u64 %rd2, 0; mov.u64 %rd3, 1;\n"
                          "again:\n"
                          "  mad.lo.u64 %rd3, %rd3, 6364136223846793005, 1442695040888963407;\n"
                          "  add.u64 %rd2, %rd2, 1; setp.lt.u64 %p0, %rd2, %rd0; @%p0 bra again;\n"
                          "  setp.eq.u64 %p1, %rd3, 42; @%p1 st.global.u64 [%rd1], %rd3;\n"
                          "  ret;\n}\n";

static CUfunction kernel;
static CUdeviceptr out;
static int multiprocessors;

static void ok(CUresult result, const char *what) {
  if (result == CUDA_SUCCESS) return;
  fprintf(stderr, "spin: %s: %d\n", what, (int)result);
  exit(1);
}

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static void launch(uint64_t rounds) {
  void *arguments[] = {&rounds, &out};
  ok(cuLaunchKernel(kernel, (unsigned int)multiprocessors * 8, 1, 1, 256, 1, 1, 0, NULL, arguments, NULL), "launch");
}

/* Number of rounds that take about `microseconds` on this GPU when no other process uses it. */
static uint64_t calibrate(double microseconds) {
  const char *given = getenv("SPIN_ROUNDS_PER_MS");
  if (given != NULL) return (uint64_t)(strtod(given, NULL) * microseconds / 1000);
  uint64_t rounds = 200000;
  launch(1000);
  ok(cuCtxSynchronize(), "synchronize");
  double from = now();
  launch(rounds);
  ok(cuCtxSynchronize(), "synchronize");
  double per_ms = (double)rounds / ((now() - from) * 1000);
  fprintf(stderr, "rounds_per_ms %.0f\n", per_ms);
  return (uint64_t)(per_ms * microseconds / 1000);
}

int main(int argc, char **argv) {
  if (argc < 3) {
    fprintf(stderr, "usage: spin SECONDS KERNEL_US [sync]\n");
    return 2;
  }
  double seconds = atof(argv[1]);
  int synchronous = argc > 3 && strcmp(argv[3], "sync") == 0;
  CUcontext context;
  CUmodule module;
  CUdevice device;
  ok(cuInit(0), "cuInit");
  ok(cuDeviceGet(&device, 0), "device");
  ok(cuDeviceGetAttribute(&multiprocessors, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, device), "multiprocessors");
  ok(cuCtxCreate_v2(&context, 0, device), "context");
  ok(cuModuleLoadData(&module, ptx), "module");
  ok(cuModuleGetFunction(&kernel, module, "spin"), "kernel");
  ok(cuMemAlloc_v2(&out, 4096), "memory");
  uint64_t rounds = calibrate(atof(argv[2]));
  /* During the first second the library learns what a launch costs. */
  double start = now(), counted_from = start + 1, end = counted_from + seconds;
  uint64_t done = 0, pending = 0;
  while (now() < end) {
    launch(rounds);
    pending++;
    if (synchronous || pending == 64) {
      ok(cuCtxSynchronize(), "synchronize");
      if (now() > counted_from) done += pending;
      pending = 0;
    }
  }
  printf("%.3f\n", (double)done / seconds);
  return 0;
}
