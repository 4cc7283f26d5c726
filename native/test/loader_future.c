#include "cuda_abi.h"
#include "sandbox.h"
#include "tap.h"
#include <dlfcn.h>

static void *symbol(void *library, const char *name) {
  void *found = dlsym(library, name);
  if (found == NULL) tap_fail(__FILE__, __LINE__, "%s is not there: %s", name, dlerror());
  return found;
}

int main(void) {
  TEST_BEGIN("a driver newer than this library works, and unknown variants are counted");
  sandbox_make();
  struct vgpu_limits *limits = sandbox_limits("GPU-none", 1 << 20, 50, 0);
  limits->header.policy = 0;
  char path[512];
  snprintf(path, sizeof path, "%s/future/libcuda.so.1", getenv("NATIVE_BUILD"));
  void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (library == NULL) tap_fail(__FILE__, __LINE__, "%s", dlerror());
  REQUIRE(library != NULL);
  CUresult (*init)(unsigned int) = (CUresult(*)(unsigned int))symbol(library, "cuInit");
  CUresult (*look_up)(const char *, void **, int, cuuint64_t, CUdriverProcAddressQueryResult *) = (CUresult(*)(
      const char *, void **, int, cuuint64_t, CUdriverProcAddressQueryResult *))symbol(library, "cuGetProcAddress_v2");
  int (*future)(int) = (int (*)(int))symbol(library, "cuFutureCall");
  REQUIRE(tap_failures == 0);
  void *function;
  CHECK_EQ(look_up("cuMemFree", &function, 12000, 0, NULL), CUDA_SUCCESS);
  CHECK(function == symbol(library, "cuMemFree_v2"));
  CHECK_EQ(init(0), CUDA_SUCCESS);
  CHECK_EQ(future(41), 42);
  CHECK(dlsym(library, "cuNobodyKnowsThis") == NULL);

  /* A variant that the driver does not export, but returns for a version that a hook fits. */
  CHECK_EQ(look_up("cuMemFree", &function, 12000, 0, NULL), CUDA_SUCCESS);
  CHECK(function == symbol(library, "cuMemFree_v2"));
  CHECK_EQ(look_up("cuFutureCall", &function, 20000, 0, NULL), CUDA_SUCCESS);
  CHECK(function == (void *)future);
  CHECK_EQ(look_up("cuMemAlloc", &function, 12000, 0, NULL), CUDA_SUCCESS);
  CHECK(function == symbol(library, "cuMemAlloc_v2"));
  struct vgpu_usage *usage = sandbox_usage();
  CHECK_EQ(usage->slots[0].unhooked, 0);

  /* No existing hook fits the ABI of a newer variant. Only the driver's function can be returned safely; the bypass is
   * counted. */
  CHECK_EQ(look_up("cuMemAlloc", &function, 20000, 0, NULL), CUDA_SUCCESS);
  CUdeviceptr pointer = 0;
  CHECK_EQ(((CUresult(*)(CUdeviceptr *, size_t, const char *))function)(&pointer, 7, "because"), CUDA_SUCCESS);
  CHECK_EQ(pointer, 8);
  CHECK_EQ(usage->slots[0].unhooked, 1);

  /* A hook whose function is missing in this driver returns an error. */
  CUresult (*missing)(CUarray *, const CUDA_ARRAY3D_DESCRIPTOR *) =
      (CUresult(*)(CUarray *, const CUDA_ARRAY3D_DESCRIPTOR *))symbol(library, "cuArray3DCreate_v2");
  CUDA_ARRAY3D_DESCRIPTOR description = {16, 16, 0, CU_AD_FORMAT_FLOAT, 1, 0};
  CUarray array;
  CHECK_EQ(missing(&array, &description), CUDA_ERROR_NOT_FOUND);
  return TEST_END;
}
