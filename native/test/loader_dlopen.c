#include "cuda_abi.h"
#include "sandbox.h"
#include "tap.h"
#include <dlfcn.h>

static void *library;

static void *symbol(const char *name) {
  void *found = dlsym(library, name);
  if (found == NULL) tap_fail(__FILE__, __LINE__, "%s is not there", name);
  return found;
}

#define CALL(name, ...) ((__typeof__(&name))symbol(#name))(__VA_ARGS__)

int main(void) {
  TEST_BEGIN("a program that loads the driver with dlopen gets the same limits");
  char path[512];
  sandbox_make();
  sandbox_limits(gpu_uuid(), 64ull << 20, 100, 0);
  snprintf(path, sizeof path, "%s/mirror/libcuda.so.1", getenv("NATIVE_BUILD"));
  library = dlopen(path, RTLD_LAZY | RTLD_LOCAL);
  if (library == NULL) tap_fail(__FILE__, __LINE__, "%s", dlerror());
  REQUIRE(library != NULL);
  /* The usual name now refers to the control library, not to the driver's. */
  CHECK(dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD) == library);

  CUcontext context;
  CUdeviceptr pointer;
  char name[64];
  size_t total;
  CHECK_EQ(CALL(cuInit, 0), CUDA_SUCCESS);
  CHECK_EQ(CALL(cuCtxCreate_v2, &context, 0, 0), CUDA_SUCCESS);
  CHECK_EQ(CALL(cuDeviceGetName, name, sizeof name, 0), CUDA_SUCCESS);
  CHECK_EQ(CALL(cuDeviceTotalMem_v2, &total, 0), CUDA_SUCCESS);
  CHECK_EQ(total, 64ull << 20);
  CHECK_EQ(CALL(cuMemAlloc_v2, &pointer, (64ull << 20) + 1), CUDA_ERROR_OUT_OF_MEMORY);
  CHECK_EQ(CALL(cuMemAlloc_v2, &pointer, 64ull << 20), CUDA_SUCCESS);
  CHECK_EQ(CALL(cuMemFree_v2, pointer), CUDA_SUCCESS);
  CHECK(dlsym(library, "cuNobodyKnowsThis") == NULL);
  return TEST_END;
}
