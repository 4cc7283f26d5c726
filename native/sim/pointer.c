#include "context.h"
#include "memory.h"
#include "pool.h"
#include "stream.h"

#include <string.h>

static bool is_pooled(const struct allocation *allocation, enum pool_place place) {
  return allocation->kind == MEMORY_POOLED && pool_of(allocation)->place == place;
}

static bool is_host(const struct allocation *allocation) {
  return allocation->kind == MEMORY_HOST || allocation->kind == MEMORY_REGISTERED || is_pooled(allocation, POOL_HOST);
}

static bool is_managed(const struct allocation *allocation) {
  return allocation->kind == MEMORY_MANAGED || is_pooled(allocation, POOL_MANAGED);
}

/* Writes an attribute of the allocation. Unknown addresses have type and flags 0. */
static CUresult attribute_of(void *data, CUpointer_attribute attribute, CUdeviceptr pointer,
                             const struct allocation *allocation) {
  bool managed = is_managed(allocation), host = is_host(allocation);
  switch (attribute) {
  case CU_POINTER_ATTRIBUTE_CONTEXT:
    *(CUcontext *)data = allocation->context;
    break;
  case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
    *(unsigned int *)data = host ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
    break;
  case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
    *(CUdeviceptr *)data = pointer;
    break;
  case CU_POINTER_ATTRIBUTE_HOST_POINTER:
    *(void **)data = host || managed ? (void *)(uintptr_t)pointer : NULL;
    break;
  case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
    *(unsigned int *)data = 0;
    break;
  case CU_POINTER_ATTRIBUTE_BUFFER_ID:
    *(unsigned long long *)data = allocation->id;
    break;
  case CU_POINTER_ATTRIBUTE_IS_MANAGED:
    *(unsigned int *)data = managed;
    break;
  case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
    *(int *)data = allocation->device;
    break;
  case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
    *(unsigned int *)data = allocation->kind == MEMORY_LINEAR;
    break;
  case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
    *(CUdeviceptr *)data = allocation->base;
    break;
  case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
    *(size_t *)data = allocation->size;
    break;
  case CU_POINTER_ATTRIBUTE_MAPPED:
    *(unsigned int *)data = allocation->kind != MEMORY_RESERVED;
    break;
  case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
    *(unsigned long long *)data = allocation->kind == MEMORY_MAPPED ? CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR : 0;
    break;
  case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
    *(unsigned int *)data = 0;
    break;
  case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
    *(unsigned long long *)data = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    break;
  case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
    *(CUmemoryPool *)data = allocation->kind == MEMORY_POOLED ? pool_of(allocation) : NULL;
    break;
  default:
    return CUDA_ERROR_INVALID_VALUE;
  }
  return CUDA_SUCCESS;
}

SIM_API CUresult cuPointerGetAttribute(void *data, CUpointer_attribute attribute, CUdeviceptr pointer) {
  ENTER();
  NEED(data != NULL);
  const struct allocation *allocation = memory_find(pointer);
  NEED(allocation != NULL);
  return attribute_of(data, attribute, pointer, allocation);
}

static size_t size_of(CUpointer_attribute attribute) {
  switch (attribute) {
  case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
  case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
  case CU_POINTER_ATTRIBUTE_IS_MANAGED:
  case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
  case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
  case CU_POINTER_ATTRIBUTE_MAPPED:
  case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
    return 4;
  default:
    return 8;
  }
}

SIM_API CUresult cuPointerGetAttributes(unsigned int count, CUpointer_attribute *attributes, void **data,
                                        CUdeviceptr pointer) {
  ENTER();
  NEED(count > 0 && attributes != NULL && data != NULL);
  const struct allocation *allocation = memory_find(pointer);
  for (unsigned int i = 0; i < count; i++) {
    if (allocation == NULL) {
      memset(data[i], 0, size_of(attributes[i]));
      if (attributes[i] == CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL) *(int *)data[i] = CU_DEVICE_INVALID;
    } else {
      TRY(attribute_of(data[i], attributes[i], pointer, allocation));
    }
  }
  return CUDA_SUCCESS;
}

SIM_API CUresult cuPointerSetAttribute(const void *value, CUpointer_attribute attribute, CUdeviceptr pointer) {
  ENTER();
  NEED(value != NULL && attribute == CU_POINTER_ATTRIBUTE_SYNC_MEMOPS && memory_find(pointer) != NULL);
  return CUDA_SUCCESS;
}

/* ---- managed memory: preferred location. It does not migrate here; advice is accepted and ignored. ---- */

static CUresult check_managed(CUdeviceptr pointer, size_t size) {
  const struct allocation *allocation = memory_find(pointer);
  NEED(size > 0 && allocation != NULL && is_managed(allocation));
  NEED(size <= allocation->size - (pointer - allocation->base));
  return CUDA_SUCCESS;
}

SIM_API CUresult cuMemPrefetchAsync_v2(CUdeviceptr pointer, size_t size, CUmemLocation location, unsigned int flags,
                                       CUstream handle) {
  CUstream stream;
  ENTER();
  NEED(flags == 0);
  NEED(location.type != CU_MEM_LOCATION_TYPE_DEVICE || driver_has(location.id));
  TRY(stream_resolve(handle, &stream));
  return check_managed(pointer, size);
}
PER_THREAD_SZ(cuMemPrefetchAsync_v2,
              (CUdeviceptr pointer, size_t size, CUmemLocation location, unsigned int flags, CUstream stream), pointer,
              size, location, flags, own_stream(stream))

SIM_API CUresult cuMemPrefetchAsync(CUdeviceptr pointer, size_t size, CUdevice device, CUstream stream) {
  CUmemLocation location = {.type = device == CU_DEVICE_CPU ? CU_MEM_LOCATION_TYPE_HOST : CU_MEM_LOCATION_TYPE_DEVICE,
                            .id = device};
  return cuMemPrefetchAsync_v2(pointer, size, location, 0, stream);
}
PER_THREAD_SZ(cuMemPrefetchAsync, (CUdeviceptr pointer, size_t size, CUdevice device, CUstream stream), pointer, size,
              device, own_stream(stream))

/* The model knows the location of pages only from advice, so discarding prefetched pages changes nothing. */
static CUresult prefetch_all(const CUdeviceptr *pointers, const size_t *sizes, size_t count,
                             const CUmemLocation *locations, const size_t *first_of_location, size_t location_count,
                             CUstream stream) {
  NEED(pointers != NULL && sizes != NULL && count > 0 && locations != NULL && first_of_location != NULL);
  NEED(location_count > 0 && location_count <= count && first_of_location[0] == 0 && stream_is_not_legacy(stream));
  for (size_t i = 0, location = 0; i < count; i++) {
    while (location + 1 < location_count && first_of_location[location + 1] <= i)
      location++;
    TRY(cuMemPrefetchAsync_v2(pointers[i], sizes[i], locations[location], 0, stream));
  }
  return CUDA_SUCCESS;
}

#define PREFETCHES(name)                                                                                               \
  SIM_API CUresult name(CUdeviceptr *pointers, size_t *sizes, size_t count, CUmemLocation *locations,                  \
                        size_t *first_of_location, size_t location_count, unsigned long long flags, CUstream stream) { \
    ENTER();                                                                                                           \
    NEED(flags == 0);                                                                                                  \
    return prefetch_all(pointers, sizes, count, locations, first_of_location, location_count, stream);                 \
  }                                                                                                                    \
  PER_THREAD_SZ(name,                                                                                                  \
                (CUdeviceptr * pointers, size_t * sizes, size_t count, CUmemLocation * locations,                      \
                 size_t * first_of_location, size_t location_count, unsigned long long flags, CUstream stream),        \
                pointers, sizes, count, locations, first_of_location, location_count, flags, own_stream(stream))
PREFETCHES(cuMemPrefetchBatchAsync)
PREFETCHES(cuMemDiscardAndPrefetchBatchAsync)

/* Advice applies to the whole allocation, even if it names a part. */
SIM_API CUresult cuMemAdvise_v2(CUdeviceptr pointer, size_t size, CUmem_advise advice, CUmemLocation location) {
  ENTER();
  NEED(advice >= CU_MEM_ADVISE_SET_READ_MOSTLY && advice <= CU_MEM_ADVISE_UNSET_ACCESSED_BY);
  TRY(check_managed(pointer, size));
  struct allocation *allocation = memory_find(pointer);
  bool host = location.type != CU_MEM_LOCATION_TYPE_DEVICE || location.id == CU_DEVICE_CPU;
  bool known = allocation->kind == MEMORY_MANAGED;
  if (known && advice == CU_MEM_ADVISE_SET_PREFERRED_LOCATION) memory_prefer_host(allocation, host);
  if (known && advice == CU_MEM_ADVISE_UNSET_PREFERRED_LOCATION) memory_prefer_host(allocation, false);
  if (known && !host && location.id == allocation->device) {
    if (advice == CU_MEM_ADVISE_SET_ACCESSED_BY) allocation->managed.mapped = true;
    if (advice == CU_MEM_ADVISE_UNSET_ACCESSED_BY) allocation->managed.mapped = false;
  }
  return CUDA_SUCCESS;
}

SIM_API CUresult cuMemAdvise(CUdeviceptr pointer, size_t size, CUmem_advise advice, CUdevice device) {
  CUmemLocation location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device};
  return cuMemAdvise_v2(pointer, size, advice, location);
}

SIM_API CUresult cuMemRangeGetAttribute(void *data, size_t data_size, CUmem_range_attribute attribute,
                                        CUdeviceptr pointer, size_t size) {
  ENTER();
  NEED(data != NULL && data_size >= sizeof(int));
  TRY(check_managed(pointer, size));
  switch (attribute) {
  case CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY:
    *(int *)data = 0;
    return CUDA_SUCCESS;
  case CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION:
    *(int *)data = memory_find(pointer)->managed.on_host ? CU_DEVICE_CPU : CU_DEVICE_INVALID;
    return CUDA_SUCCESS;
  case CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION:
    *(int *)data = CU_DEVICE_INVALID;
    return CUDA_SUCCESS;
  default:
    return CUDA_ERROR_INVALID_VALUE;
  }
}

SIM_API CUresult cuStreamAttachMemAsync(CUstream handle, CUdeviceptr pointer, size_t length, unsigned int flags) {
  CUstream stream;
  ENTER();
  NEED(flags == CU_MEM_ATTACH_GLOBAL || flags == CU_MEM_ATTACH_HOST || flags == CU_MEM_ATTACH_SINGLE);
  TRY(stream_resolve(handle, &stream));
  return check_managed(pointer, length == 0 ? 1 : length);
}
PER_THREAD_SZ(cuStreamAttachMemAsync, (CUstream stream, CUdeviceptr pointer, size_t length, unsigned int flags),
              own_stream(stream), pointer, length, flags)
