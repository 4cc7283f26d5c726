/* A GPU under the control library, as seen by a program in a container. Tests that include this file are linked with
 * the driver's name and load the control library with the simulated driver behind it. */
#ifndef GPU_H
#define GPU_H

#include "cuda_abi.h"
#include "sandbox.h"
#include "tap.h"

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

/* Kernels whose names contain their duration; the parameter of busy_us is the duration in microseconds. The simulated
 * driver reads the names. A real GPU runs the loops, whose rounds in a millisecond TEST_ROUNDS_PER_MS tells (gpu/run).
 */
static const struct {
  const char *declaration;
  double us; /* of one launch, or of one unit of the first parameter */
} gpu_durations[] = {
    {".visible .entry busy_us(.param .u64 us)", 0},
    {".visible .entry touch_us(.param .u64 us, .param .u64 at, .param .u64 bytes)", 0},
    {".visible .entry busy_us_1()", 1},
    {".visible .entry busy_us_20()", 20},
    {".visible .entry busy_us_200()", 200},
    {".visible .entry busy_ms_2()", 2000},
    {".visible .entry busy_ms_20()", 20000},
    {".visible .entry block_us_100()", 100},
};

/* The text of the kernels, as PTX. */
__attribute__((unused)) static const char *gpu_kernels(void) {
  static char text[8192];
  if (text[0] != 0) return text;
  const char *given = getenv("TEST_ROUNDS_PER_MS");
  double rounds_per_us = given == NULL ? 0 : strtod(given, NULL) / 1000;
  size_t at = (size_t)snprintf(text, sizeof text, ".version 7.0\n.target sm_70\n.address_size 64\n");
  for (size_t i = 0; i < sizeof gpu_durations / sizeof gpu_durations[0]; i++) {
    double us = gpu_durations[i].us;
    at += (size_t)snprintf(text + at, sizeof text - at,
                           "%s {\n"
                           "  .reg .pred %%p<2>; .reg .u64 %%n, %%x; .shared .align 8 .u64 sink;\n"
                           "  mov.u64 %%n, %llu; mov.u64 %%x, 1;\n",
                           gpu_durations[i].declaration, (unsigned long long)(rounds_per_us * (us == 0 ? 1 : us)));
    if (us == 0)
      at += (size_t)snprintf(text + at, sizeof text - at, "  ld.param.u64 %%x, [us]; mul.lo.u64 %%n, %%n, %%x;\n");
    at += (size_t)snprintf(text + at, sizeof text - at,
                           "again:\n"
                           "  mad.lo.u64 %%x, %%x, 6364136223846793005, 1442695040888963407;\n"
                           "  setp.gt.u64 %%p0, %%n, 1; sub.u64 %%n, %%n, 1; @%%p0 bra again;\n"
                           "  setp.eq.u64 %%p1, %%x, 42; @%%p1 st.volatile.shared.u64 [sink], %%x;\n"
                           "  ret;\n}\n");
  }
  REQUIRE(at < sizeof text);
  return text;
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

/* Runs as a program of another container that keeps the GPU busy without a limit; does not return. */
__attribute__((unused)) static void gpu_occupy(void) {
  char path[600];
  snprintf(path, sizeof path, "%s/nobody", getenv("GPU_SIM_STATE"));
  REQUIRE(setenv("VGPU_SANDBOX_DIRECTORY", path, 1) == 0);
  gpu_open();
  CUfunction kernel = gpu_kernel("busy_us_200");
  for (;;)
    OK(gpu_launch(kernel, 80, NULL));
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
