/* A future driver: a few existing calls, an unknown call, and a newer variant of a hooked call. loader_future.c links
 * it as libcuda-origin.so.1 behind the control library. */
#include "cuda_abi.h"
#include <dlfcn.h>
#include <stdbool.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

int cuFutureCall(int value);
int cuFutureOpensCompanion(void);
CUresult cuMemAlloc_v9(CUdeviceptr *pointer, size_t bytes, const char *why);

EXPORT CUresult cuInit(unsigned int flags) {
  return flags == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
EXPORT CUresult cuDeviceGetCount(int *count) {
  *count = 0;
  return CUDA_SUCCESS;
}
EXPORT int cuFutureCall(int value) {
  return value + 1;
}
/* Drivers open further libraries at run time, such as the PTX compiler. */
EXPORT int cuFutureOpensCompanion(void) {
  return dlopen("libfuture-companion.so.1", RTLD_LAZY | RTLD_LOCAL) != NULL;
}

/* Calls that are only forwarded. Each reports whether its arguments arrived. */
EXPORT CUresult cuLinkAddData_v2(CUlinkState state, CUjitInputType type, void *data, size_t size, const char *name,
                                 unsigned int count, CUjit_option *options, void **values) {
  bool arrived = state == (CUlinkState)1 && type == (CUjitInputType)2 && data == (void *)3 && size == 4 &&
                 name == (const char *)5 && count == 6 && options == (CUjit_option *)7 && values == (void **)8;
  return arrived ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuTexRefSetMipmapLevelClamp(void *reference, float least, float most);
EXPORT CUresult cuTexRefSetMipmapLevelClamp(void *reference, float least, float most) {
  return reference == (void *)1 && least == 0.5f && most == 8.25f ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

EXPORT CUresult cuMemAlloc_v9(CUdeviceptr *pointer, size_t bytes, const char *why) {
  *pointer = bytes + (why != NULL);
  return CUDA_SUCCESS;
}
EXPORT CUresult cuMemAlloc_v2(CUdeviceptr *pointer, size_t bytes) {
  if (pointer == NULL) return CUDA_ERROR_INVALID_VALUE;
  *pointer = bytes;
  return CUDA_SUCCESS;
}
EXPORT CUresult cuMemFree_v2(CUdeviceptr pointer) {
  return pointer != 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
/* What cuGetProcAddress returns instead of the exported function. */
static CUresult free_not_exported(CUdeviceptr pointer) {
  return cuMemFree_v2(pointer);
}
EXPORT CUresult cuGetProcAddress_v2(const char *name, void **function, int version, cuuint64_t flags,
                                    CUdriverProcAddressQueryResult *status) {
  (void)flags;
  if (name == NULL) return CUDA_ERROR_INVALID_VALUE;
  *function = strcmp(name, "cuMemAlloc") == 0     ? (version >= 20000 ? (void *)cuMemAlloc_v9 : (void *)cuMemAlloc_v2)
              : strcmp(name, "cuMemFree") == 0    ? (version >= 3020 ? (void *)free_not_exported : NULL)
              : strcmp(name, "cuFutureCall") == 0 ? (void *)cuFutureCall
                                                  : NULL;
  if (status != NULL) *status = *function == NULL ? CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND : CU_GET_PROC_ADDRESS_SUCCESS;
  return *function == NULL ? CUDA_ERROR_NOT_FOUND : CUDA_SUCCESS;
}
