/* Location hints for managed memory. Advice and prefetches can move or copy pages to the GPU, but memory beyond the
 * limit must stay on the host. Such hints are ignored and return success. */
#include "control.h"
#include "driver.h"
#include "host_backed.h"

static bool is_host_backed(CUdeviceptr pointer) {
  return control_enforces() && host_backed_has(pointer);
}

CUresult cuMemAdvise(CUdeviceptr pointer, size_t bytes, CUmem_advise advice, CUdevice device) {
  return is_host_backed(pointer) ? CUDA_SUCCESS : driver.cuMemAdvise(pointer, bytes, advice, device);
}

CUresult cuMemAdvise_v2(CUdeviceptr pointer, size_t bytes, CUmem_advise advice, CUmemLocation location) {
  return is_host_backed(pointer) ? CUDA_SUCCESS : driver.cuMemAdvise_v2(pointer, bytes, advice, location);
}

CUresult cuMemPrefetchAsync(CUdeviceptr pointer, size_t bytes, CUdevice device, CUstream stream) {
  return is_host_backed(pointer) ? CUDA_SUCCESS : driver.cuMemPrefetchAsync(pointer, bytes, device, stream);
}

CUresult cuMemPrefetchAsync_ptsz(CUdeviceptr pointer, size_t bytes, CUdevice device, CUstream stream) {
  return is_host_backed(pointer) ? CUDA_SUCCESS : driver.cuMemPrefetchAsync_ptsz(pointer, bytes, device, stream);
}

CUresult cuMemPrefetchAsync_v2(CUdeviceptr pointer, size_t bytes, CUmemLocation location, unsigned int flags,
                               CUstream stream) {
  return is_host_backed(pointer) ? CUDA_SUCCESS : driver.cuMemPrefetchAsync_v2(pointer, bytes, location, flags, stream);
}

CUresult cuMemPrefetchAsync_v2_ptsz(CUdeviceptr pointer, size_t bytes, CUmemLocation location, unsigned int flags,
                                    CUstream stream) {
  return is_host_backed(pointer) ? CUDA_SUCCESS
                                 : driver.cuMemPrefetchAsync_v2_ptsz(pointer, bytes, location, flags, stream);
}

/* Batches. A batch with host-backed memory is passed on one range at a time, without that memory. */
struct prefetch {
  CUdeviceptr *pointers;
  size_t *sizes;
  size_t count;
  CUmemLocation *locations;
  size_t *first_of_location; /* index of the first range that goes to each location */
  size_t location_count;
  unsigned long long flags;
  CUstream stream;
};

typedef CUresult prefetch_call(CUdeviceptr *, size_t *, size_t, CUmemLocation *, size_t *, size_t, unsigned long long,
                               CUstream);

static bool has_host_backed(const struct prefetch *batch) {
  for (size_t i = 0; batch->pointers != NULL && i < batch->count; i++)
    if (is_host_backed(batch->pointers[i])) return true;
  return false;
}

static CUresult prefetch(const struct prefetch *batch, prefetch_call *call) {
  if (!has_host_backed(batch) || batch->sizes == NULL || batch->locations == NULL || batch->first_of_location == NULL ||
      batch->location_count == 0)
    return call(batch->pointers, batch->sizes, batch->count, batch->locations, batch->first_of_location,
                batch->location_count, batch->flags, batch->stream);
  size_t location = 0, first = 0;
  for (size_t i = 0; i < batch->count; i++) {
    while (location + 1 < batch->location_count && batch->first_of_location[location + 1] <= i)
      location++;
    if (is_host_backed(batch->pointers[i])) continue;
    CUresult result = call(&batch->pointers[i], &batch->sizes[i], 1, &batch->locations[location], &first, 1,
                           batch->flags, batch->stream);
    if (result != CUDA_SUCCESS) return result;
  }
  return CUDA_SUCCESS;
}

#define PREFETCHES(name)                                                                                               \
  CUresult name(CUdeviceptr *pointers, size_t *sizes, size_t count, CUmemLocation *locations,                          \
                size_t *first_of_location, size_t location_count, unsigned long long flags, CUstream stream) {         \
    return prefetch(                                                                                                   \
        &(struct prefetch){pointers, sizes, count, locations, first_of_location, location_count, flags, stream},       \
        driver.name);                                                                                                  \
  }

PREFETCHES(cuMemPrefetchBatchAsync)
PREFETCHES(cuMemPrefetchBatchAsync_ptsz)
PREFETCHES(cuMemDiscardAndPrefetchBatchAsync)
PREFETCHES(cuMemDiscardAndPrefetchBatchAsync_ptsz)
