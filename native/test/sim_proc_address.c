#include "sim.h"

static void *look_up(const char *name, int version, cuuint64_t flags, CUdriverProcAddressQueryResult expected) {
  void *function = (void *)1, *old = (void *)1;
  CUdriverProcAddressQueryResult status = (CUdriverProcAddressQueryResult)9;
  OK(cuGetProcAddress_v2(name, &function, version, flags, &status));
  if (status != expected) tap_fail(__FILE__, __LINE__, "%s at %d: status %d, not %d", name, version, status, expected);
  CHECK_EQ(cuGetProcAddress(name, &old, version, flags),
           expected == CU_GET_PROC_ADDRESS_SUCCESS ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND);
  CHECK(old == function);
  return function;
}

static void *found(const char *name, int version, cuuint64_t flags) {
  return look_up(name, version, flags, CU_GET_PROC_ADDRESS_SUCCESS);
}

int main(void) {
  const cuuint64_t own = CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM, legacy = CU_GET_PROC_ADDRESS_LEGACY_STREAM;
  void *function;
  const void *table = &table;
  CUuuid id = {{0}};
  TEST_BEGIN("cuGetProcAddress returns the variant for a program's CUDA version and default stream");
  /* Before cuInit, as the CUDA runtime does. */
  CHECK(found("cuMemAlloc", 2000, 0) == (void *)cuMemAlloc);
  CHECK(found("cuMemAlloc", 3020, 0) == (void *)cuMemAlloc_v2);
  CHECK(found("cuMemAlloc", 13000, own) == (void *)cuMemAlloc_v2);
  CHECK(found("cuCtxCreate", 11030, 0) == (void *)cuCtxCreate_v2);
  CHECK(found("cuCtxCreate", 11040, 0) == (void *)cuCtxCreate_v3);
  CHECK(found("cuCtxCreate", 13000, 0) == (void *)cuCtxCreate_v4);
  CHECK(found("cuLaunchKernel", 12000, legacy) == (void *)cuLaunchKernel);
  CHECK(found("cuLaunchKernel", 12000, own) == (void *)cuLaunchKernel_ptsz);
  CHECK(found("cuLaunchKernel", 4000, own) == (void *)cuLaunchKernel);
  CHECK(found("cuMemcpyHtoD", 12000, own) == (void *)cuMemcpyHtoD_v2_ptds);
  CHECK(found("cuStreamGetCaptureInfo", 10010, 0) == (void *)cuStreamGetCaptureInfo);
  CHECK(found("cuStreamGetCaptureInfo", 11030, own) == (void *)cuStreamGetCaptureInfo_v2_ptsz);
  CHECK(found("cuStreamGetCaptureInfo", 13000, own) == (void *)cuStreamGetCaptureInfo_v3_ptsz);
  CHECK(found("cuGetProcAddress", 11030, 0) == (void *)cuGetProcAddress);
  CHECK(found("cuGetProcAddress", 12000, 0) == (void *)cuGetProcAddress_v2);

  CHECK(look_up("cuLaunchKernelEx", 11050, 0, CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT) == NULL);
  CHECK(look_up("cuMemAlloc_v2", 12000, 0, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND) == NULL);
  CHECK(look_up("cuNothing", 12000, 0, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND) == NULL);
  CHECK_EQ(cuGetProcAddress_v2("cuInit", &function, 13010, 0, NULL), CUDA_ERROR_INVALID_VALUE);
  CHECK_EQ(cuGetProcAddress_v2("cuInit", &function, 12000, 8, NULL), CUDA_ERROR_INVALID_VALUE);
  CHECK_EQ(cuGetProcAddress_v2(NULL, &function, 12000, 0, NULL), CUDA_ERROR_INVALID_VALUE);
  OK(cuGetProcAddress_v2("cuInit", &function, 12000, 0, NULL));
  CHECK_EQ(cuGetExportTable(&table, &id), CUDA_ERROR_NOT_FOUND);
  CHECK(table == NULL);
  return TEST_END;
}
