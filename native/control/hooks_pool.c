/* Stream-ordered allocation and memory pools, and the synchronisation calls after which pools shrink. */
#include "activity.h"
#include "capture.h"
#include "control.h"
#include "devices.h"
#include "driver.h"
#include "gate.h"
#include "graphs.h"
#include "memory.h"
#include "place.h"
#include "pools.h"

struct request {
  CUdeviceptr *pointer;
  size_t bytes;
  CUmemoryPool pool; /* NULL: the device's current pool */
  CUstream stream;
  bool per_thread;
};

static CUresult call(const struct request *request) {
  if (request->pool != NULL) {
    return request->per_thread
               ? driver.cuMemAllocFromPoolAsync_ptsz(request->pointer, request->bytes, request->pool, request->stream)
               : driver.cuMemAllocFromPoolAsync(request->pointer, request->bytes, request->pool, request->stream);
  }
  return request->per_thread ? driver.cuMemAllocAsync_ptsz(request->pointer, request->bytes, request->stream)
                             : driver.cuMemAllocAsync(request->pointer, request->bytes, request->stream);
}

/* The pool could not be registered, so the pointer itself is charged. It belongs to no context. */
static CUresult allocate_unpooled(const struct request *request, int device) {
  struct memory_reservation reservation;
  if (!memory_reserve(&reservation, device, request->bytes, VGPU_DENIED_ASYNC)) return CUDA_ERROR_OUT_OF_MEMORY;
  CUresult result = call(request);
  if (result == CUDA_SUCCESS) {
    if (memory_track(&reservation, TRACK_MEMORY, *request->pointer, 0)) return result;
    driver.cuMemFree_v2(*request->pointer);
    result = CUDA_ERROR_OUT_OF_MEMORY;
  }
  memory_cancel(&reservation);
  return result;
}

static CUresult allocate_pooled(const struct request *request, struct pool *pool, enum vgpu_denied_api api) {
  struct memory_reservation reservation;
  if (!pools_reserve(pool, &reservation, request->bytes, api)) return CUDA_ERROR_OUT_OF_MEMORY;
  CUresult result = call(request);
  if (result != CUDA_SUCCESS) {
    pools_charge(pool, &reservation);
    return result;
  }
  if (pools_commit(pool, &reservation, api)) {
    if (pools_track(pool, *request->pointer, request->bytes)) return result;
    reservation.bytes = 0;
  }
  pools_undo(pool, &reservation, *request->pointer);
  return CUDA_ERROR_OUT_OF_MEMORY;
}

static CUresult allocate(const struct request *request) {
  if (!control_enforces()) return call(request);
  CUstream stream = capture_stream(request->stream, request->per_thread);
  if (capture_covers(stream)) {
    graphs_note_allocation();
    return call(request);
  }
  int device = devices_of_stream(stream);
  if (device == DEVICE_NONE || request->pointer == NULL) return call(request);
  CUmemoryPool handle = request->pool;
  if (handle == NULL && device >= 0) driver.cuDeviceGetMemPool(&handle, devices_ordinal((uint32_t)device));
  if (handle == NULL) return allocate_unpooled(request, device);
  bool counts;
  if (request->pool != NULL && !pools_knows(handle)) device = place_of_pool(handle, device);
  struct pool *pool = pools_find(handle, device, &counts);
  if (!counts) return call(request);
  if (pool == NULL) return allocate_unpooled(request, device);
  return allocate_pooled(request, pool, request->pool != NULL ? VGPU_DENIED_POOL : VGPU_DENIED_ASYNC);
}

CUresult cuMemAllocAsync(CUdeviceptr *pointer, size_t bytes, CUstream stream) {
  return allocate(&(struct request){pointer, bytes, NULL, stream, false});
}

CUresult cuMemAllocAsync_ptsz(CUdeviceptr *pointer, size_t bytes, CUstream stream) {
  return allocate(&(struct request){pointer, bytes, NULL, stream, true});
}

CUresult cuMemAllocFromPoolAsync(CUdeviceptr *pointer, size_t bytes, CUmemoryPool pool, CUstream stream) {
  if (pool == NULL) return driver.cuMemAllocFromPoolAsync(pointer, bytes, pool, stream);
  return allocate(&(struct request){pointer, bytes, pool, stream, false});
}

CUresult cuMemAllocFromPoolAsync_ptsz(CUdeviceptr *pointer, size_t bytes, CUmemoryPool pool, CUstream stream) {
  if (pool == NULL) return driver.cuMemAllocFromPoolAsync_ptsz(pointer, bytes, pool, stream);
  return allocate(&(struct request){pointer, bytes, pool, stream, true});
}

static CUresult free_in_order(CUdeviceptr pointer, CUstream stream, bool per_thread) {
  struct track_entry entry;
  bool covered = memory_passes_free() || capture_covers(capture_stream(stream, per_thread));
  bool pooled = !covered && memory_untrack(TRACK_POOLED, pointer, &entry);
  bool own = !covered && !pooled && memory_untrack_linear(pointer, &entry);
  CUresult result = per_thread ? driver.cuMemFreeAsync_ptsz(pointer, stream) : driver.cuMemFreeAsync(pointer, stream);
  if (pooled) pools_finish_free(&entry, result == CUDA_SUCCESS);
  if (own) memory_finish_free(&entry, result == CUDA_SUCCESS);
  return result;
}

CUresult cuMemFreeAsync(CUdeviceptr pointer, CUstream stream) {
  return free_in_order(pointer, stream, false);
}

CUresult cuMemFreeAsync_ptsz(CUdeviceptr pointer, CUstream stream) {
  return free_in_order(pointer, stream, true);
}

CUresult cuMemPoolCreate(CUmemoryPool *pool, const CUmemPoolProps *properties) {
  if (!control_enforces() || properties == NULL) return driver.cuMemPoolCreate(pool, properties);
  int device = place_of(properties->allocType, &properties->location);
  struct memory_reservation nothing;
  if (device != PLACE_HOST && !memory_reserve(&nothing, device, 0, VGPU_DENIED_POOL)) return CUDA_ERROR_OUT_OF_MEMORY;
  CUresult result = driver.cuMemPoolCreate(pool, properties);
  if (result != CUDA_SUCCESS || (device != DEVICE_NONE && pools_made(*pool, device))) return result;
  driver.cuMemPoolDestroy(*pool);
  return CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult cuMemPoolDestroy(CUmemoryPool pool) {
  CUresult result = driver.cuMemPoolDestroy(pool);
  if (result == CUDA_SUCCESS && control_enforces()) pools_destroyed(pool);
  return result;
}

CUresult cuMemPoolTrimTo(CUmemoryPool pool, size_t keep) {
  CUresult result = driver.cuMemPoolTrimTo(pool, keep);
  if (result == CUDA_SUCCESS && control_enforces()) pools_update_one(pool);
  return result;
}

static void before_synchronization(void) {
  if (control_enforces()) gate_wait();
}

static CUresult after_synchronization(CUresult result) {
  if (!control_enforces()) return result;
  gate_waited();
  pools_update_freed();
  return result;
}

static CUresult wait_for_stream(CUstream stream, CUstream launched_on, CUresult (*wait)(CUstream)) {
  before_synchronization();
  if (!activity_is_on()) return after_synchronization(wait(stream));
  uint64_t mark = activity_wait();
  CUresult result = wait(stream);
  if (result == CUDA_SUCCESS)
    activity_waited_for_stream(mark, launched_on);
  else
    activity_waited(mark);
  return after_synchronization(result);
}

CUresult cuStreamSynchronize(CUstream stream) {
  return wait_for_stream(stream, stream, driver.cuStreamSynchronize);
}

CUresult cuStreamSynchronize_ptsz(CUstream stream) {
  return wait_for_stream(stream, capture_stream(stream, true), driver.cuStreamSynchronize_ptsz);
}

CUresult cuEventSynchronize(CUevent event) {
  before_synchronization();
  if (!activity_is_on()) return after_synchronization(driver.cuEventSynchronize(event));
  uint64_t mark = activity_wait();
  CUresult result = driver.cuEventSynchronize(event);
  activity_waited(mark);
  return after_synchronization(result);
}

/* In a process with several contexts this also counts work of the other contexts as complete. Programs normally have
 * one context. */
static CUresult context_waited(uint64_t mark, CUresult result) {
  if (result == CUDA_SUCCESS)
    activity_waited_for_all(mark);
  else
    activity_waited(mark);
  return after_synchronization(result);
}

CUresult cuCtxSynchronize(void) {
  before_synchronization();
  if (!activity_is_on()) return after_synchronization(driver.cuCtxSynchronize());
  uint64_t mark = activity_wait();
  return context_waited(mark, driver.cuCtxSynchronize());
}

CUresult cuCtxSynchronize_v2(CUcontext context) {
  before_synchronization();
  if (!activity_is_on()) return after_synchronization(driver.cuCtxSynchronize_v2(context));
  uint64_t mark = activity_wait();
  return context_waited(mark, driver.cuCtxSynchronize_v2(context));
}
