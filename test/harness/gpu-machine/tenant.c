/*
 * A GPU program in a container, which runs until it is killed:
 *
 *     tenant HOLD_MIB KERNEL_US
 *
 * Allocates HOLD_MIB of the first GPU in blocks of 16 MiB, retries refused blocks, and prints "holds". Then it launches
 * kernels of KERNEL_US, one after another; with 0 it is idle. It prints "launched" after the first, and ends when its
 * standard input closes.
 */
#include "cuda_abi.h"
#include "cuda_functions.h"

#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define BLOCK (16u << 20)

static const char image[] = ".version 7.0\n.target sm_70\n.address_size 64\n.visible .entry busy_us(.param .u64 us) { ret; }\n";

static void need(CUresult result, const char *what) {
  if (result == CUDA_SUCCESS) return;
  fprintf(stderr, "tenant: %s: %d\n", what, (int)result);
  exit(1);
}

/* Waits for the given time, or ends with the parent process. */
static void rest(int ms) {
  struct pollfd input = {.fd = 0, .events = POLLIN};
  if (poll(&input, 1, ms) > 0) exit(0);
}

static void hold(size_t bytes) {
  CUdeviceptr address;
  for (size_t held = 0; held < bytes;) {
    CUresult result = cuMemAlloc_v2(&address, BLOCK);
    if (result == CUDA_SUCCESS)
      held += BLOCK;
    else if (result == CUDA_ERROR_OUT_OF_MEMORY)
      rest(10);
    else
      need(result, "allocation");
  }
}

int main(int count, char **arguments) {
  CUdevice device;
  CUcontext context;
  CUmodule module;
  CUfunction kernel;
  CUstream stream;
  if (count != 3) return 2;
  uint64_t us = strtoull(arguments[2], NULL, 10);
  void *parameters[] = {&us};
  setvbuf(stdout, NULL, _IOLBF, 0);
  need(cuInit(0), "cuInit");
  need(cuDeviceGet(&device, 0), "device");
  need(cuCtxCreate_v2(&context, CU_CTX_SCHED_BLOCKING_SYNC, device), "context");
  need(cuModuleLoadData(&module, image), "module");
  need(cuModuleGetFunction(&kernel, module, "busy_us"), "kernel");
  need(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), "stream");
  hold(strtoull(arguments[1], NULL, 10) << 20);
  puts("holds");
  if (us == 0)
    for (;;)
      rest(1000);
  for (uint64_t launches = 0;; launches++) {
    need(cuLaunchKernel(kernel, 80, 1, 1, 128, 1, 1, 0, stream, parameters, NULL), "launch");
    need(cuStreamSynchronize(stream), "synchronize");
    if (launches == 0) puts("launched");
    rest(0);
  }
}
