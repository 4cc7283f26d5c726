/*
 * A program that uses all of its memory repeatedly: one kernel per buffer on one stream, until its time is over. Prints
 * the number of refused buffers, the number of kernels in all rounds except the first, and their time in ns.
 *
 *     working_set SECONDS BUFFERS MIB KERNEL_US [renew]
 *
 * A kernel takes KERNEL_US if its buffer is on the GPU. With `renew` every round frees one buffer and allocates it
 * again.
 */
#include "cuda_abi.h"
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define MOST_BUFFERS 4096u

static const char kernels[] = ".version 7.0\n.target sm_70\n.address_size 64\n"
                              ".visible .entry touch_us(.param .u64 us, .param .u64 at, .param .u64 bytes) { ret; }\n";

static CUdeviceptr buffers[MOST_BUFFERS];
static unsigned int refused;

static void ok(CUresult result, const char *what) {
  if (result == CUDA_SUCCESS) return;
  fprintf(stderr, "working_set: %s: %d\n", what, (int)result);
  exit(1);
}

static uint64_t now_ns(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

static void allocate(CUdeviceptr *buffer, size_t bytes) {
  CUresult result = cuMemAlloc_v2(buffer, bytes);
  if (result == CUDA_ERROR_OUT_OF_MEMORY) {
    refused++;
    *buffer = 0;
  } else {
    ok(result, "allocate");
  }
}

int main(int argc, char **argv) {
  if (argc < 5 || strtoul(argv[2], NULL, 10) > MOST_BUFFERS) {
    fprintf(stderr, "usage: working_set SECONDS BUFFERS MIB KERNEL_US [renew]\n");
    return 2;
  }
  unsigned int count = (unsigned int)strtoul(argv[2], NULL, 10);
  uint64_t bytes = strtoull(argv[3], NULL, 10) << 20, us = strtoull(argv[4], NULL, 10);
  bool renew = argc > 5 && strcmp(argv[5], "renew") == 0;
  CUcontext context;
  CUmodule module;
  CUfunction touch;
  CUdevice device;
  CUstream stream;
  int multiprocessors;
  ok(cuInit(0), "cuInit");
  ok(cuDeviceGet(&device, 0), "device");
  ok(cuDeviceGetAttribute(&multiprocessors, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, device), "multiprocessors");
  ok(cuCtxCreate_v2(&context, 0, device), "context");
  ok(cuModuleLoadData(&module, kernels), "module");
  ok(cuModuleGetFunction(&touch, module, "touch_us"), "kernel");
  ok(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), "stream");
  for (unsigned int i = 0; i < count; i++)
    allocate(&buffers[i], bytes);
  uint64_t end = now_ns() + (uint64_t)(atof(argv[1]) * 1e9), began = 0, done = now_ns(), launches = 0;
  for (unsigned int round = 0; round == 0 || began == 0 || done < end; round++) {
    if (round == 1) began = done;
    for (unsigned int i = 0; i < count; i++) {
      if (buffers[i] == 0) continue;
      void *arguments[] = {&us, &buffers[i], &bytes};
      unsigned int blocks = (unsigned int)multiprocessors;
      ok(cuLaunchKernel(touch, blocks, 1, 1, 128, 1, 1, 0, stream, arguments, NULL), "launch");
      launches += round > 0;
    }
    ok(cuStreamSynchronize(stream), "synchronize");
    if (renew) {
      unsigned int one = round % count;
      if (buffers[one] != 0) ok(cuMemFree_v2(buffers[one]), "free");
      allocate(&buffers[one], bytes);
    }
    done = now_ns();
  }
  printf("%u %llu %llu\n", refused, (unsigned long long)launches, (unsigned long long)(done - began));
  return 0;
}
