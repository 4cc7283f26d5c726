/*
 * A load generator for a real GPU: launches kernels of a given duration as fast as the library lets it, and prints the
 * number of kernels per second.
 *
 *     spin SECONDS KERNEL_US|mixed [sync]
 *
 * `mixed`: one function whose kernels take 50 us to 3 ms, as those of an inference service do.
 */
#include "cuda_abi.h"
#include "gpu_kernels.h"
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* A chain of dependent multiplications. Its duration is computation and not memory latency, so foreign time slices do
 * not shorten it. On the simulated GPU a round takes a microsecond, by its name. */
static const char ptx[] = ".version 7.0\n.target sm_70\n.address_size 64\n"
                          ".visible .entry busy_us__spin(.param .u64 rounds, .param .u64 out) {\n"
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
  unsigned int blocks = (unsigned int)multiprocessors * 8;
  ok(cuLaunchKernel(kernel, blocks, 1, 1, 256, 1, 1, 0, NULL, arguments, NULL), "launch");
}

/* How long a grid takes when no other process uses the GPU. */
static double grid_ms(CUfunction function, uint64_t argument, unsigned int blocks, unsigned int threads) {
  uint64_t few = argument / 100;
  void *first[] = {&few, &out}, *measured[] = {&argument, &out};
  ok(cuLaunchKernel(function, blocks, 1, 1, threads, 1, 1, 0, NULL, first, NULL), "launch");
  ok(cuCtxSynchronize(), "synchronize");
  double from = now();
  ok(cuLaunchKernel(function, blocks, 1, 1, threads, 1, 1, 0, NULL, measured, NULL), "launch");
  ok(cuCtxSynchronize(), "synchronize");
  return (now() - from) * 1000;
}

/* Rounds in a millisecond of the kernels of gpu_kernels.h, in grids that leave multiprocessors idle. */
static double test_rounds_per_ms(void) {
  CUmodule module;
  CUfunction busy;
  const double guess = 100000, ms = 10;
  ok(setenv("TEST_ROUNDS_PER_MS", "100000", 1) == 0 ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY, "environment");
  ok(cuModuleLoadData(&module, gpu_kernels()), "module");
  ok(cuModuleGetFunction(&busy, module, "busy_us"), "kernel");
  return guess * ms / grid_ms(busy, (uint64_t)(ms * 1000), 80, 128);
}

/* Number of rounds in a microsecond. Without SPIN_ROUNDS_PER_MS it is measured, and printed for later runs. */
static double rounds_per_us(void) {
  const char *given = getenv("SPIN_ROUNDS_PER_MS");
  const uint64_t rounds = 200000;
  if (given != NULL) return strtod(given, NULL) / 1000;
  double per_ms = (double)rounds / grid_ms(kernel, rounds, (unsigned int)multiprocessors * 8, 256);
  fprintf(stderr, "rounds_per_ms %.0f\ntest_rounds_per_ms %.0f\n", per_ms, test_rounds_per_ms());
  return per_ms / 1000;
}

/* The next of the durations of `mixed`, in microseconds: each power of two of the range is equally frequent. */
static double mixed_us(void) {
  static uint32_t state = 1;
  state = state * 1664525u + 1013904223u;
  double us = 50 * (1 + (state >> 8 & 0xffff) / 65536.0);
  us *= 1u << (state >> 24) % 6;
  return us < 3000 ? us : 3000;
}

/* Kernels that are launched between two waits: of 50 ms, and 64 at most. */
static uint64_t batch_of(double kernel_us) {
  double kernels = 50000 / kernel_us;
  return kernels < 1 ? 1 : kernels < 64 ? (uint64_t)kernels : 64;
}

int main(int argc, char **argv) {
  if (argc < 3) {
    fprintf(stderr, "usage: spin SECONDS KERNEL_US|mixed [sync]\n");
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
  ok(cuModuleGetFunction(&kernel, module, "busy_us__spin"), "kernel");
  ok(cuMemAlloc_v2(&out, 4096), "memory");
  bool mixed = strcmp(argv[2], "mixed") == 0;
  double per_us = rounds_per_us();
  uint64_t rounds = (uint64_t)(per_us * atof(argv[2]));
  /* During the first second the library learns what a launch costs. The rate counts from one wait for the GPU to
   * another, so that the kernels that were not complete at the end do not matter. */
  double start = now(), learned_at = start + 1, end = learned_at + seconds, counted_from = 0, last = start;
  uint64_t done = 0, pending = 0, batch = batch_of(mixed ? 800 : atof(argv[2]));
  while (last < end) {
    launch(mixed ? (uint64_t)(per_us * mixed_us()) : rounds);
    if (++pending < (synchronous ? 1 : batch)) continue;
    ok(cuCtxSynchronize(), "synchronize");
    last = now();
    if (counted_from > 0)
      done += pending;
    else if (last >= learned_at)
      counted_from = last;
    pending = 0;
  }
  if (done > 0) printf("%.3f\n", (double)done / (last - counted_from));
  return 0;
}
