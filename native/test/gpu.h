/* A GPU under the control library, as seen by a program in a container. Tests that include this file are linked with
 * the driver's name and load the control library with the simulated driver behind it. */
#ifndef GPU_H
#define GPU_H

#include "cuda_abi.h"
#include "gpu_kernels.h"
#include "sandbox.h"
#include "tap.h"
#include <limits.h>

#define MIB (1ull << 20)

#define OK(call)                                                                                                       \
  do {                                                                                                                 \
    CUresult gpu_result = (call);                                                                                      \
    if (gpu_result != CUDA_SUCCESS) {                                                                                  \
      tap_fail(__FILE__, __LINE__, "%s is %d", #call, (int)gpu_result);                                                \
      exit(TAP_FAIL);                                                                                                  \
    }                                                                                                                  \
  } while (0)

#define REFUSED(call) CHECK_EQ(call, CUDA_ERROR_OUT_OF_MEMORY)

/* Whether gpu/run has started this program: its kernels have rounds then. */
__attribute__((unused)) static bool gpu_is_real(void) {
  return getenv("TEST_ROUNDS_PER_MS") != NULL;
}

static CUcontext gpu_context;
static CUmodule gpu_module;

__attribute__((unused)) static void gpu_open(void) {
  CUdevice device;
  OK(cuInit(0));
  OK(cuDeviceGet(&device, 0));
  OK(cuCtxCreate_v2(&gpu_context, 0, device));
}

__attribute__((unused)) static CUfunction gpu_kernel(const char *name) {
  CUfunction function;
  if (gpu_module == NULL) OK(cuModuleLoadData(&gpu_module, gpu_kernels()));
  OK(cuModuleGetFunction(&function, gpu_module, name));
  return function;
}

__attribute__((unused)) static CUresult gpu_launch(CUfunction function, unsigned int blocks, CUstream stream) {
  return cuLaunchKernel(function, blocks, 1, 1, 128, 1, 1, 0, stream, NULL, NULL);
}

/* Runs as a program of another container that keeps the GPU busy without a limit, for so many launches of 200 us; does
 * not return. */
__attribute__((unused)) static void gpu_occupy_for(unsigned int launches) {
  char path[600];
  snprintf(path, sizeof path, "%s/nobody", getenv("GPU_SIM_STATE"));
  REQUIRE(setenv("VGPU_SANDBOX_DIRECTORY", path, 1) == 0);
  gpu_open();
  CUfunction kernel = gpu_kernel("busy_us_200");
  for (unsigned int i = 0; i < launches; i++)
    OK(gpu_launch(kernel, 80, NULL));
  OK(cuCtxSynchronize());
  exit(0);
}

__attribute__((unused)) static void gpu_occupy(void) {
  gpu_occupy_for(UINT_MAX);
}

/* Memory charged to the container on its first device. */
__attribute__((unused)) static uint64_t gpu_held(void) {
  static struct vgpu_usage *usage;
  if (usage == NULL) usage = sandbox_usage();
  return sandbox_held(usage, 0);
}

/* Memory that the container holds beyond its limit. */
__attribute__((unused)) static uint64_t gpu_host_backed(void) {
  static struct vgpu_usage *usage;
  uint64_t held = 0;
  if (usage == NULL) usage = sandbox_usage();
  for (uint32_t slot = 0; slot < VGPU_MAX_PROCESSES; slot++)
    held += __atomic_load_n(&usage->slots[slot].host_backed_bytes, __ATOMIC_ACQUIRE);
  return held;
}

__attribute__((unused)) static uint64_t gpu_denied(enum vgpu_denied_api api) {
  static struct vgpu_usage *usage;
  if (usage == NULL) usage = sandbox_usage();
  return usage->devices[0].denied[api];
}

#endif
