/*
 * A program that uses the CUDA driver, to be run in a container. It is linked to libcuda.so.1 like any other program
 * and is not aware of limits.
 *
 *     gpu-probe total          prints the memory of the GPU: "total <MiB>"
 *     gpu-probe memory         allocates until it is refused: "memory <MiB> result <CUresult>"
 *     gpu-probe streams        the same by a stream of each GPU, while the context of another GPU is current:
 *                              "streams <MiB> <MiB> ..."
 *     gpu-probe share MS       keeps the GPU busy for MS ms: "share <percent of the time it was busy>"
 *     gpu-probe work MIB MS    like share, while it holds MIB MiB of memory
 *
 * Exit codes: 0 success, 1 a driver call failed unexpectedly, 2 wrong usage.
 */
#include "cuda_abi.h"
#include "cuda_functions.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static void check(CUresult result, const char *what) {
  if (result == CUDA_SUCCESS) return;
  printf("%s failed with %d\n", what, (int)result);
  exit(1);
}

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

static const size_t MIB = 1u << 20;

static void memory(void) {
  const size_t block = 64 * MIB;
  size_t total = 0;
  CUdeviceptr address;
  CUresult result;
  while ((result = cuMemAlloc_v2(&address, block)) == CUDA_SUCCESS)
    total += block;
  printf("memory %zu result %d\n", total >> 20, (int)result);
}

#define MOST_GPUS 16

static void streams(void) {
  CUcontext contexts[MOST_GPUS];
  CUstream made[MOST_GPUS];
  int count;
  check(cuDeviceGetCount(&count), "cuDeviceGetCount");
  if (count > MOST_GPUS) count = MOST_GPUS;
  for (int i = 0; i < count; i++) {
    check(cuDevicePrimaryCtxRetain(&contexts[i], i), "cuDevicePrimaryCtxRetain");
    check(cuCtxSetCurrent(contexts[i]), "cuCtxSetCurrent");
    check(cuStreamCreate(&made[i], CU_STREAM_NON_BLOCKING), "cuStreamCreate");
  }
  printf("streams");
  for (int i = 0; i < count; i++) {
    size_t total = 0;
    CUdeviceptr address;
    check(cuCtxSetCurrent(contexts[(i + 1) % count]), "cuCtxSetCurrent");
    while (cuMemAllocAsync(&address, 64 * MIB, made[i]) == CUDA_SUCCESS)
      total += 64;
    printf(" %zu", total);
  }
  printf("\n");
}

static void total(CUdevice device) {
  size_t bytes;
  check(cuDeviceTotalMem_v2(&bytes, device), "cuDeviceTotalMem");
  printf("total %zu\n", bytes >> 20);
}

/* The simulated driver takes the duration from the kernel's name: one millisecond on the whole GPU. */
static const char *const KERNEL = "busy_us_1000";
static const double KERNEL_SECONDS = 1e-3;
static const char *const IMAGE =
    ".version 7.0\n.target sm_70\n.address_size 64\n.visible .entry busy_us_1000() { ret; }\n";

static void share(double seconds) {
  CUmodule module;
  CUfunction kernel;
  check(cuModuleLoadData(&module, IMAGE), "cuModuleLoadData");
  check(cuModuleGetFunction(&kernel, module, KERNEL), "cuModuleGetFunction");
  unsigned launches = 0;
  double start = now();
  while (now() - start < seconds) {
    for (int i = 0; i < 4; i++, launches++)
      check(cuLaunchKernel(kernel, 80, 1, 1, 256, 1, 1, 0, NULL, NULL, NULL), "cuLaunchKernel");
    check(cuCtxSynchronize(), "cuCtxSynchronize");
  }
  printf("share %.0f\n", 100 * launches * KERNEL_SECONDS / (now() - start));
}

static int known(int count, char **arguments) {
  if (count == 2)
    return strcmp(arguments[1], "total") == 0 || strcmp(arguments[1], "memory") == 0 ||
           strcmp(arguments[1], "streams") == 0;
  if (count == 3) return strcmp(arguments[1], "share") == 0;
  return count == 4 && strcmp(arguments[1], "work") == 0;
}

int main(int count, char **arguments) {
  if (!known(count, arguments)) {
    fprintf(stderr, "usage: gpu-probe total | memory | streams | share MS | work MIB MS\n");
    return 2;
  }
  CUdevice device;
  CUcontext context;
  check(cuInit(0), "cuInit");
  if (strcmp(arguments[1], "streams") == 0) {
    streams();
    return 0;
  }
  check(cuDeviceGet(&device, 0), "cuDeviceGet");
  check(cuCtxCreate_v2(&context, 0, device), "cuCtxCreate");
  if (strcmp(arguments[1], "total") == 0)
    total(device);
  else if (strcmp(arguments[1], "memory") == 0)
    memory();
  else if (strcmp(arguments[1], "share") == 0)
    share(atof(arguments[2]) / 1000);
  else {
    CUdeviceptr address;
    check(cuMemAlloc_v2(&address, strtoul(arguments[2], NULL, 10) * MIB), "cuMemAlloc");
    share(atof(arguments[3]) / 1000);
  }
  return 0;
}
