#define _GNU_SOURCE
#include "gpu.h"
#include <dlfcn.h>
#include <stdbool.h>

static const struct {
  const char *name;
  int since;
  bool per_thread;
} hooked[] = {
#define LEGACY false
#define PER_THREAD true
#define CUDA_HOOK(version, call, symbol, own, ...) {#call, version, own},
#include "cuda_calls.def"
};

static bool is_hook(void *function) {
  Dl_info found, library;
  return dladdr(function, &found) && dladdr((void *)cuGetProcAddress_v2, &library) &&
         found.dli_fbase == library.dli_fbase;
}

/* The functions that a program built for this CUDA version gets. */
static void each(int version, cuuint64_t flags) {
  for (size_t i = 0; i < sizeof hooked / sizeof hooked[0]; i++) {
    if (hooked[i].since > version || (hooked[i].per_thread && flags == 0)) continue;
    void *function = NULL;
    OK(cuGetProcAddress_v2(hooked[i].name, &function, version, flags, NULL));
    if (function == NULL || !is_hook(function))
      tap_fail(__FILE__, __LINE__, "%s of CUDA %d is not the hook", hooked[i].name, version);
  }
}

int main(void) {
  TEST_BEGIN("programs built for any CUDA version get the hook of every hooked call");
  char node[512];
  sandbox_make();
  sandbox_limits(gpu_uuid(), 64 * MIB, 100, 0);
  sandbox_path(node, sizeof node, "node.json");
  FILE *file = fopen(node, "we");
  REQUIRE(file != NULL);
  fputs("{\"cudaVersion\": 13050, \"gpus\": [{}]}", file);
  fclose(file);
  setenv("GPU_SIM_NODE", node, 1);
  gpu_open();
  static const int versions[] = {10000, 11080, 12000, 12090, 13000, 13050};
  int newest;
  OK(cuDriverGetVersion(&newest));
  for (size_t i = 0; i < sizeof versions / sizeof versions[0]; i++) {
    if (versions[i] > newest) continue;
    each(versions[i], CU_GET_PROC_ADDRESS_DEFAULT);
    each(versions[i], CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM);
  }
  CHECK_EQ(sandbox_usage()->slots[0].unhooked, 0);

  /* Memory freed in stream order is also given back after the synchronisation calls of CUDA 13. */
  CUstream stream;
  CUdeviceptr pointer;
  OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  for (int i = 0; i < 3; i++) {
    OK(cuMemAllocAsync(&pointer, 60 * MIB, stream));
    OK(cuMemFreeAsync(pointer, stream));
    OK(cuCtxSynchronize_v2(gpu_context));
    CHECK_EQ(gpu_held(), 0);
  }
  return TEST_END;
}
