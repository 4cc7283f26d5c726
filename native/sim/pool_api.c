#include "pool.h"

SIM_API CUresult cuDeviceGetDefaultMemPool(CUmemoryPool *pool, CUdevice device) {
  ENTER();
  NEED(pool != NULL);
  NEED_DEVICE(device);
  pool_lock();
  *pool = pool_default(device);
  pool_unlock();
  return *pool == NULL ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
}

SIM_API CUresult cuDeviceGetMemPool(CUmemoryPool *pool, CUdevice device) {
  ENTER();
  NEED(pool != NULL);
  NEED_DEVICE(device);
  pool_lock();
  *pool = pool_current(device);
  pool_unlock();
  return *pool == NULL ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
}

SIM_API CUresult cuDeviceSetMemPool(CUdevice device, CUmemoryPool pool) {
  ENTER();
  NEED_DEVICE(device);
  TRY(pool_check(pool));
  NEED(pool->device == device);
  pool_lock();
  pool_set_current(device, pool);
  pool_unlock();
  return CUDA_SUCCESS;
}

static CUresult check_place(const CUmemLocation *location, CUmemAllocationType type) {
  NEED(location != NULL && type == CU_MEM_ALLOCATION_TYPE_PINNED && location->type == CU_MEM_LOCATION_TYPE_DEVICE);
  return CUDA_SUCCESS;
}

SIM_API CUresult cuMemGetDefaultMemPool(CUmemoryPool *pool, CUmemLocation *location, CUmemAllocationType type) {
  TRY(check_place(location, type));
  return cuDeviceGetDefaultMemPool(pool, location->id);
}

SIM_API CUresult cuMemGetMemPool(CUmemoryPool *pool, CUmemLocation *location, CUmemAllocationType type) {
  TRY(check_place(location, type));
  return cuDeviceGetMemPool(pool, location->id);
}

SIM_API CUresult cuMemSetMemPool(CUmemLocation *location, CUmemAllocationType type, CUmemoryPool pool) {
  TRY(check_place(location, type));
  return cuDeviceSetMemPool(location->id, pool);
}

SIM_API CUresult cuMemPoolCreate(CUmemoryPool *pool, const CUmemPoolProps *properties) {
  ENTER();
  NEED(pool != NULL && properties != NULL && properties->allocType == CU_MEM_ALLOCATION_TYPE_PINNED);
  NEED(properties->location.type == CU_MEM_LOCATION_TYPE_DEVICE);
  NEED_DEVICE(properties->location.id);
  pool_lock();
  *pool = pool_make(properties->location.id, false);
  if (*pool != NULL) {
    (*pool)->properties = *properties;
    (*pool)->max_bytes = properties->maxSize;
  }
  pool_unlock();
  return *pool == NULL ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
}

SIM_API CUresult cuMemPoolDestroy(CUmemoryPool pool) {
  ENTER();
  TRY(pool_check(pool));
  NEED(!pool->is_default);
  pool_lock();
  pool_destroy(pool);
  pool_unlock();
  return CUDA_SUCCESS;
}

SIM_API CUresult cuMemPoolTrimTo(CUmemoryPool pool, size_t keep) {
  ENTER();
  TRY(pool_check(pool));
  pool_lock();
  pool_trim(pool, keep);
  pool_unlock();
  return CUDA_SUCCESS;
}

SIM_API CUresult cuMemPoolGetAttribute(CUmemoryPool pool, CUmemPool_attribute attribute, void *value) {
  ENTER();
  TRY(pool_check(pool));
  NEED(value != NULL);
  CUresult result = CUDA_SUCCESS;
  pool_lock();
  switch (attribute) {
  case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES:
    *(int *)value = pool->follow;
    break;
  case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC:
    *(int *)value = pool->opportunistic;
    break;
  case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES:
    *(int *)value = pool->internal;
    break;
  case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
    *(cuuint64_t *)value = pool->threshold;
    break;
  case CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT:
    *(cuuint64_t *)value = pool->reserved;
    break;
  case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
    *(cuuint64_t *)value = pool->reserved_high;
    break;
  case CU_MEMPOOL_ATTR_USED_MEM_CURRENT:
    *(cuuint64_t *)value = pool->used;
    break;
  case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
    *(cuuint64_t *)value = pool->used_high;
    break;
  default:
    result = CUDA_ERROR_INVALID_VALUE;
  }
  pool_unlock();
  return result;
}

SIM_API CUresult cuMemPoolSetAttribute(CUmemoryPool pool, CUmemPool_attribute attribute, void *value) {
  ENTER();
  TRY(pool_check(pool));
  NEED(value != NULL);
  CUresult result = CUDA_SUCCESS;
  pool_lock();
  switch (attribute) {
  case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES:
    pool->follow = *(const int *)value;
    break;
  case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC:
    pool->opportunistic = *(const int *)value;
    break;
  case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES:
    pool->internal = *(const int *)value;
    break;
  case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
    pool->threshold = *(const cuuint64_t *)value;
    break;
  case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
    pool->reserved_high = pool->reserved;
    break;
  case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
    pool->used_high = pool->used;
    break;
  default:
    result = CUDA_ERROR_INVALID_VALUE;
  }
  pool_unlock();
  return result;
}

SIM_API CUresult cuMemPoolSetAccess(CUmemoryPool pool, const CUmemAccessDesc *access, size_t count) {
  ENTER();
  TRY(pool_check(pool));
  NEED(count == 0 || access != NULL);
  return CUDA_SUCCESS;
}

SIM_API CUresult cuMemPoolGetAccess(CUmemAccess_flags *flags, CUmemoryPool pool, CUmemLocation *location) {
  ENTER();
  TRY(pool_check(pool));
  NEED(flags != NULL && location != NULL);
  *flags = location->id == pool->device ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE : CU_MEM_ACCESS_FLAGS_PROT_NONE;
  return CUDA_SUCCESS;
}
