/*
 * A driver that supports the memory locations of CUDA 13. It places all of them on the simulated driver's first device,
 * so that an uncharged location is detected. loader_places.c links it as libcuda-origin.so.1, in front of the simulated
 * driver under another name.
 */
#define _GNU_SOURCE
#include "cuda_abi.h"
#include <dlfcn.h>
#include <stdbool.h>

#define EXPORT __attribute__((visibility("default")))
#define SIMULATED(name, ...) ((__typeof__(&name))dlsym(simulated(), #name))(__VA_ARGS__)

static CUmemoryPool host_default;

static void *simulated(void) {
  static void *library;
  if (library == NULL) library = dlopen("libsimulated.so.1", RTLD_LAZY | RTLD_NOLOAD);
  return library;
}

static const CUmemLocation first_device = {CU_MEM_LOCATION_TYPE_DEVICE, 0};

EXPORT CUresult cuMemPoolCreate(CUmemoryPool *pool, const CUmemPoolProps *wanted) {
  if (wanted == NULL) return CUDA_ERROR_INVALID_VALUE;
  CUmemPoolProps given = *wanted;
  given.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  given.location = first_device;
  return SIMULATED(cuMemPoolCreate, pool, &given);
}

EXPORT CUresult cuMemGetDefaultMemPool(CUmemoryPool *pool, CUmemLocation *location, CUmemAllocationType type) {
  if (location->type != CU_MEM_LOCATION_TYPE_HOST) return SIMULATED(cuMemGetDefaultMemPool, pool, location, type);
  CUmemPoolProps given = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED, .location = first_device};
  if (host_default == NULL) SIMULATED(cuMemPoolCreate, &host_default, &given);
  *pool = host_default;
  return CUDA_SUCCESS;
}

EXPORT CUresult cuMemPoolGetAttribute(CUmemoryPool pool, CUmemPool_attribute attribute, void *value) {
  int answer = attribute == CU_MEMPOOL_ATTR_ALLOCATION_TYPE ? CU_MEM_ALLOCATION_TYPE_PINNED
               : attribute == CU_MEMPOOL_ATTR_LOCATION_TYPE
                   ? (pool == host_default ? CU_MEM_LOCATION_TYPE_HOST : CU_MEM_LOCATION_TYPE_DEVICE)
               : attribute == CU_MEMPOOL_ATTR_LOCATION_ID ? 0
                                                          : -1;
  if (answer < 0) return SIMULATED(cuMemPoolGetAttribute, pool, attribute, value);
  *(int *)value = answer;
  return CUDA_SUCCESS;
}

EXPORT CUresult cuMemCreate(CUmemGenericAllocationHandle *handle, size_t bytes, const CUmemAllocationProp *wanted,
                            unsigned long long flags) {
  if (wanted == NULL) return CUDA_ERROR_INVALID_VALUE;
  CUmemAllocationProp given = *wanted;
  given.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  given.location = first_device;
  return SIMULATED(cuMemCreate, handle, bytes, &given, flags);
}
