#include "pool.h"

/* ---- selection of the pool ---- */

/* Converts the requested type and location of memory. Host memory belongs to the current device. */
static CUresult place_of(CUmemAllocationType type, const CUmemLocation *location, enum pool_place *place,
                         CUdevice *device) {
  bool managed = type == CU_MEM_ALLOCATION_TYPE_MANAGED && driver.machine->node.cuda_version >= 13000;
  NEED(location != NULL && (managed || type == CU_MEM_ALLOCATION_TYPE_PINNED));
  *device =
      thread.depth > 0 && thread.contexts[thread.depth - 1] != NULL ? thread.contexts[thread.depth - 1]->device : 0;
  switch (location->type) {
  case CU_MEM_LOCATION_TYPE_DEVICE:
    NEED_DEVICE(location->id);
    *device = location->id;
    *place = managed ? POOL_MANAGED : POOL_DEVICE;
    return CUDA_SUCCESS;
  case CU_MEM_LOCATION_TYPE_NONE:
    NEED(managed);
    *place = POOL_MANAGED;
    return CUDA_SUCCESS;
  case CU_MEM_LOCATION_TYPE_HOST:
  case CU_MEM_LOCATION_TYPE_HOST_NUMA:
  case CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT:
    *place = managed ? POOL_MANAGED : POOL_HOST;
    return CUDA_SUCCESS;
  case CU_MEM_LOCATION_TYPE_DEVICE_LOCALITY_DOMAIN:
    return CUDA_ERROR_NOT_SUPPORTED;
  default:
    return CUDA_ERROR_INVALID_VALUE;
  }
}

static CUresult find(CUmemoryPool *pool, CUdevice device, enum pool_place place,
                     CUmemoryPool (*of)(CUdevice, enum pool_place)) {
  pool_lock();
  *pool = of(device, place);
  pool_unlock();
  return *pool == NULL ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
}

SIM_API CUresult cuDeviceGetDefaultMemPool(CUmemoryPool *pool, CUdevice device) {
  ENTER();
  NEED(pool != NULL);
  NEED_DEVICE(device);
  return find(pool, device, POOL_DEVICE, pool_default);
}

SIM_API CUresult cuDeviceGetMemPool(CUmemoryPool *pool, CUdevice device) {
  ENTER();
  NEED(pool != NULL);
  NEED_DEVICE(device);
  return find(pool, device, POOL_DEVICE, pool_current);
}

static CUresult set_current(CUmemoryPool pool, CUdevice device, enum pool_place place) {
  TRY(pool_check(pool));
  NEED(pool->place == place && pool->device == device);
  pool_lock();
  pool_set_current(pool);
  pool_unlock();
  return CUDA_SUCCESS;
}

SIM_API CUresult cuDeviceSetMemPool(CUdevice device, CUmemoryPool pool) {
  ENTER();
  NEED_DEVICE(device);
  return set_current(pool, device, POOL_DEVICE);
}

SIM_API CUresult cuMemGetDefaultMemPool(CUmemoryPool *pool, CUmemLocation *location, CUmemAllocationType type) {
  enum pool_place place;
  CUdevice device;
  ENTER();
  NEED(pool != NULL);
  TRY(place_of(type, location, &place, &device));
  return find(pool, device, place, pool_default);
}

SIM_API CUresult cuMemGetMemPool(CUmemoryPool *pool, CUmemLocation *location, CUmemAllocationType type) {
  enum pool_place place;
  CUdevice device;
  ENTER();
  NEED(pool != NULL);
  TRY(place_of(type, location, &place, &device));
  return find(pool, device, place, pool_current);
}

SIM_API CUresult cuMemSetMemPool(CUmemLocation *location, CUmemAllocationType type, CUmemoryPool pool) {
  enum pool_place place;
  CUdevice device;
  ENTER();
  TRY(place_of(type, location, &place, &device));
  return set_current(pool, device, place);
}

/* ---- creation and attributes ---- */

SIM_API CUresult cuMemPoolCreate(CUmemoryPool *pool, const CUmemPoolProps *properties) {
  enum pool_place place;
  CUdevice device;
  ENTER();
  NEED(pool != NULL && properties != NULL);
  TRY(place_of(properties->allocType, &properties->location, &place, &device));
  NEED(place != POOL_MANAGED || properties->handleTypes == CU_MEM_HANDLE_TYPE_NONE);
  pool_lock();
  *pool = pool_make(device, place, false);
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
  case CU_MEMPOOL_ATTR_ALLOCATION_TYPE:
    *(CUmemAllocationType *)value = pool->properties.allocType;
    break;
  case CU_MEMPOOL_ATTR_LOCATION_TYPE:
    *(CUmemLocationType *)value = pool->properties.location.type;
    break;
  case CU_MEMPOOL_ATTR_LOCATION_ID:
    *(int *)value = pool->properties.location.id;
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
  *flags = pool->place != POOL_DEVICE || location->id == pool->device ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE
                                                                      : CU_MEM_ACCESS_FLAGS_PROT_NONE;
  return CUDA_SUCCESS;
}
