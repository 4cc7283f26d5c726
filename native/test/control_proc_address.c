#define _GNU_SOURCE
#include "gpu.h"
#include <dlfcn.h>

/* The library that contains a function returned by cuGetProcAddress. */
static const char *library_of(void *function) {
  static char name[256];
  Dl_info info;
  const char *base = dladdr(function, &info) && info.dli_fname != NULL ? strrchr(info.dli_fname, '/') : NULL;
  snprintf(name, sizeof name, "%s", base == NULL ? "?" : base + 1);
  return name;
}

static void *first(const char *name, int version, cuuint64_t flags) {
  void *function = NULL;
  OK(cuGetProcAddress(name, &function, version, flags));
  return function;
}

static void *second(const char *name, int version, cuuint64_t flags) {
  CUdriverProcAddressQueryResult status = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
  void *function = NULL;
  OK(cuGetProcAddress_v2(name, &function, version, flags, &status));
  CHECK_EQ(status, CU_GET_PROC_ADDRESS_SUCCESS);
  return function;
}

static void each(void *(*look_up)(const char *, int, cuuint64_t)) {
  /* By version: exactly the variant and ABI that the program was built for. */
  CHECK(look_up("cuMemAlloc", 2000, 0) == (void *)cuMemAlloc);
  CHECK(look_up("cuMemAlloc", 3020, 0) == (void *)cuMemAlloc_v2);
  CHECK(look_up("cuMemAlloc", 13000, 0) == (void *)cuMemAlloc_v2);
  CHECK(look_up("cuDeviceTotalMem", 12000, 0) == (void *)cuDeviceTotalMem_v2);
  CHECK(look_up("cuGetProcAddress", 11030, 0) == (void *)cuGetProcAddress);
  CHECK(look_up("cuGetProcAddress", 12000, 0) == (void *)cuGetProcAddress_v2);
  /* By default stream. */
  CHECK(look_up("cuLaunchKernel", 12000, CU_GET_PROC_ADDRESS_DEFAULT) == (void *)cuLaunchKernel);
  CHECK(look_up("cuLaunchKernel", 12000, CU_GET_PROC_ADDRESS_LEGACY_STREAM) == (void *)cuLaunchKernel);
  CHECK(look_up("cuLaunchKernel", 12000, CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM) == (void *)cuLaunchKernel_ptsz);
  CHECK(look_up("cuMemAllocAsync", 12000, CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM) ==
        (void *)cuMemAllocAsync_ptsz);
  CHECK(look_up("cuGraphInstantiate", 12000, 0) != NULL);
  /* Not hooked: the driver's function. */
  CHECK_TEXT(library_of(look_up("cuDeviceGetName", 12000, 0)), "libcuda-origin.so.1");
}

int main(void) {
  TEST_BEGIN("both variants of cuGetProcAddress return the hook of exactly the variant that the driver chose");
  sandbox_make();
  sandbox_limits(gpu_uuid(), 64 * MIB, 100, 0);
  /* Programs look up functions before cuInit. */
  CHECK(first("cuMemAlloc", 12000, 0) == (void *)cuMemAlloc_v2);
  gpu_open();
  each(first);
  each(second);

  void *function = (void *)1;
  CHECK(cuGetProcAddress("cuNothingOfThisName", &function, 12000, 0) != CUDA_SUCCESS);

  CUresult (*allocate)(CUdeviceptr *, size_t) = (CUresult(*)(CUdeviceptr *, size_t))second("cuMemAlloc", 12000, 0);
  CUdeviceptr pointer;
  REFUSED(allocate(&pointer, 65 * MIB));
  OK(allocate(&pointer, 64 * MIB));
  CHECK_EQ(gpu_held(), 64 * MIB);
  OK(cuMemFree_v2(pointer));

  struct vgpu_usage *usage = sandbox_usage();
  CHECK((usage->slots[0].self_test & VGPU_TEST_LOOKUP_KNOWN) != 0);
  CHECK((usage->slots[0].self_test & VGPU_TEST_DEVICES_MATCHED) != 0);
  CHECK_EQ(usage->slots[0].unhooked, 0);
  return TEST_END;
}
