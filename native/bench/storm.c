/*
 * Launches as fast as possible and waits only while the stream is full. Prints a line per second: the number of
 * launches that the driver accepted, and the CPU time (ns) of the process.
 *
 *     storm SECONDS KERNEL_NS
 */
#include "cuda_abi.h"
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

/* Launches between two reads of the clock. */
#define BATCH 256

static const char kernels[] =
    ".version 7.0\n.target sm_70\n.address_size 64\n.visible .entry busy_ns(.param .u64 ns) { ret; }\n";

static void ok(CUresult result, const char *what) {
  if (result == CUDA_SUCCESS) return;
  fprintf(stderr, "storm: %s: %d\n", what, (int)result);
  exit(1);
}

static uint64_t clock_ns(clockid_t clock) {
  struct timespec now;
  clock_gettime(clock, &now);
  return (uint64_t)now.tv_sec * 1000000000ull + (uint64_t)now.tv_nsec;
}

int main(int argc, char **argv) {
  CUcontext context;
  CUmodule module;
  CUfunction kernel;
  CUstream stream;
  if (argc != 3) {
    fprintf(stderr, "usage: storm SECONDS KERNEL_NS\n");
    return 2;
  }
  uint64_t ns = strtoull(argv[2], NULL, 10);
  void *arguments[] = {&ns};
  ok(cuInit(0), "cuInit");
  ok(cuCtxCreate_v2(&context, 0, 0), "context");
  ok(cuModuleLoadData(&module, kernels), "module");
  ok(cuModuleGetFunction(&kernel, module, "busy_ns"), "kernel");
  ok(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), "stream");
  for (int second = 0; second < atoi(argv[1]); second++) {
    uint64_t launches = 0, end = clock_ns(CLOCK_MONOTONIC) + 1000000000ull;
    uint64_t used = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
    for (; clock_ns(CLOCK_MONOTONIC) < end; launches += BATCH)
      for (int i = 0; i < BATCH; i++)
        ok(cuLaunchKernel(kernel, 1, 1, 1, 32, 1, 1, 0, stream, arguments, NULL), "launch");
    used = clock_ns(CLOCK_PROCESS_CPUTIME_ID) - used;
    printf("%llu %llu\n", (unsigned long long)launches, (unsigned long long)used);
  }
  return 0;
}
