#include "cuda_abi.h"
#include "nvml_abi.h"
#include "sandbox.h"
#include "tap.h"
#include <dlfcn.h>
#include <pthread.h>

typedef CUresult (*link_call)(CUlinkState, CUjitInputType, void *, size_t, const char *, unsigned int, CUjit_option *,
                              void **);
typedef CUresult (*texture_call)(void *, float, float);

static void *open_library(const char *name) {
  char path[512];
  snprintf(path, sizeof path, "%s/%s", getenv("NATIVE_BUILD"), name);
  void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (library == NULL) tap_fail(__FILE__, __LINE__, "%s", dlerror());
  REQUIRE(library != NULL);
  return library;
}

static void *symbol(void *library, const char *name) {
  void *found = dlsym(library, name);
  if (found == NULL) tap_fail(__FILE__, __LINE__, "%s is not there: %s", name, dlerror());
  REQUIRE(found != NULL);
  return found;
}

static link_call add_data;
static texture_call clamp;

static void *call_forwards(void *unused) {
  (void)unused;
  long wrong = 0;
  for (int i = 0; i < 1000; i++) {
    wrong += add_data((CUlinkState)1, (CUjitInputType)2, (void *)3, 4, (const char *)5, 6, (CUjit_option *)7,
                      (void **)8) != CUDA_SUCCESS;
    wrong += clamp((void *)1, 0.5f, 8.25f) != CUDA_SUCCESS;
  }
  return (void *)wrong;
}

int main(void) {
  TEST_BEGIN("calls without a hook reach the driver with all arguments, and missing ones return an error");
  void *library = open_library("future/libcuda.so.1");
  add_data = (link_call)symbol(library, "cuLinkAddData_v2");
  clamp = (texture_call)symbol(library, "cuTexRefSetMipmapLevelClamp");

  /* The first call of each function resolves the driver's function. Several threads make it at once. */
  pthread_t threads[4];
  void *wrong;
  for (int i = 0; i < 4; i++)
    REQUIRE(pthread_create(&threads[i], NULL, call_forwards, NULL) == 0);
  for (int i = 0; i < 4; i++) {
    pthread_join(threads[i], &wrong);
    CHECK_EQ((long)wrong, 0);
  }

  /* The driver lacks this call. Programs that are linked with it start, and the call returns an error. */
  CUresult (*missing)(CUdevice *) = (CUresult(*)(CUdevice *))symbol(library, "cuCtxGetDevice");
  CUdevice device;
  CHECK_EQ(missing(&device), CUDA_ERROR_NOT_FOUND);
  CHECK_EQ(missing(&device), CUDA_ERROR_NOT_FOUND);
  nvmlReturn_t (*absent)(unsigned int, unsigned long long *) =
      (nvmlReturn_t(*)(unsigned int, unsigned long long *))symbol(open_library("future/libnvidia-ml.so.1"),
                                                                  "nvmlVgpuInstanceGetFbUsage");
  unsigned long long bytes;
  CHECK_EQ(absent(1, &bytes), NVML_ERROR_FUNCTION_NOT_FOUND);
  return TEST_END;
}
