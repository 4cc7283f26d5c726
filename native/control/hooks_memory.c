/* Linear, pitched and managed memory; external memory. */
#include "control.h"
#include "devices.h"
#include "driver.h"
#include "host_backed.h"
#include "memory.h"
#include "obstacles.h"
#include "pools.h"

/* Row alignment of all GPUs so far. The exact pitch is known after the call. */
#define PITCH_ALIGNMENT 512u

/* After the driver call: tracks the allocation, frees it if tracking fails, and cancels the reservation if the call
 * failed. */
static CUresult keep(struct memory_reservation *reservation, CUresult result, const CUdeviceptr *pointer,
                     CUcontext context) {
  if (result == CUDA_SUCCESS) {
    if (memory_track(reservation, TRACK_MEMORY, *pointer, (uint64_t)context)) return result;
    driver.cuMemFree_v2(*pointer);
    result = CUDA_ERROR_OUT_OF_MEMORY;
  }
  memory_cancel(reservation);
  return result;
}

CUresult cuMemAlloc_v2(CUdeviceptr *pointer, size_t bytes) {
  if (memory_passes() || pointer == NULL) return driver.cuMemAlloc_v2(pointer, bytes);
  CUcontext context;
  struct memory_reservation reservation;
  if (!memory_reserve_or_host_back(true, &reservation, devices_current(&context), memory_taken(bytes),
                                   VGPU_DENIED_ALLOC))
    return CUDA_ERROR_OUT_OF_MEMORY;
  CUresult result = reservation.host_backed
                        ? host_backed_allocate(pointer, &reservation, CU_MEM_ATTACH_GLOBAL, VGPU_DENIED_ALLOC)
                        : driver.cuMemAlloc_v2(pointer, bytes);
  return keep(&reservation, result, pointer, context);
}

CUresult cuMemAlloc(CUdeviceptr_v1 *pointer, unsigned int bytes) {
  if (!control_enforces() || pointer == NULL) return driver.cuMemAlloc(pointer, bytes);
  CUcontext context;
  struct memory_reservation reservation;
  if (!memory_reserve(&reservation, devices_current(&context), memory_taken(bytes), VGPU_DENIED_ALLOC))
    return CUDA_ERROR_OUT_OF_MEMORY;
  CUresult result = driver.cuMemAlloc(pointer, bytes);
  CUdeviceptr wide = result == CUDA_SUCCESS ? *pointer : 0;
  return keep(&reservation, result, &wide, context);
}

/* Sizes that the driver accepts in pitched allocations. */
static bool is_element(unsigned int bytes) {
  return bytes == 4 || bytes == 8 || bytes == 16;
}

static uint64_t pitched_bytes(uint64_t width, uint64_t height) {
  uint64_t padded = width + (PITCH_ALIGNMENT - 1);
  if (padded < width) return UINT64_MAX;
  return memory_taken(memory_product(padded / PITCH_ALIGNMENT * PITCH_ALIGNMENT, height));
}

/* Charges exactly `pitch` bytes per row, and frees the allocation if that does not fit. */
static CUresult keep_pitched(struct memory_reservation *reservation, CUresult result, uint64_t pitch, uint64_t height,
                             const CUdeviceptr *pointer, CUcontext context) {
  if (result == CUDA_SUCCESS &&
      !memory_commit(reservation, memory_taken(memory_product(pitch, height)), VGPU_DENIED_PITCH)) {
    driver.cuMemFree_v2(*pointer);
    result = CUDA_ERROR_OUT_OF_MEMORY;
  }
  return keep(reservation, result, pointer, context);
}

CUresult cuMemAllocPitch_v2(CUdeviceptr *pointer, size_t *pitch, size_t width, size_t height, unsigned int element) {
  if (!control_enforces() || pointer == NULL || pitch == NULL)
    return driver.cuMemAllocPitch_v2(pointer, pitch, width, height, element);
  CUcontext context;
  struct memory_reservation reservation;
  uint64_t bytes = pitched_bytes(width, height);
  if (!memory_reserve_if(is_element(element), &reservation, devices_current(&context), bytes, VGPU_DENIED_PITCH))
    return CUDA_ERROR_OUT_OF_MEMORY;
  CUresult result = driver.cuMemAllocPitch_v2(pointer, pitch, width, height, element);
  return keep_pitched(&reservation, result, result == CUDA_SUCCESS ? *pitch : 0, height, pointer, context);
}

CUresult cuMemAllocPitch(CUdeviceptr_v1 *pointer, unsigned int *pitch, unsigned int width, unsigned int height,
                         unsigned int element) {
  if (!control_enforces() || pointer == NULL || pitch == NULL)
    return driver.cuMemAllocPitch(pointer, pitch, width, height, element);
  CUcontext context;
  struct memory_reservation reservation;
  uint64_t bytes = pitched_bytes(width, height);
  if (!memory_reserve_if(is_element(element), &reservation, devices_current(&context), bytes, VGPU_DENIED_PITCH))
    return CUDA_ERROR_OUT_OF_MEMORY;
  CUresult result = driver.cuMemAllocPitch(pointer, pitch, width, height, element);
  CUdeviceptr wide = result == CUDA_SUCCESS ? *pointer : 0;
  return keep_pitched(&reservation, result, result == CUDA_SUCCESS ? *pitch : 0, height, &wide, context);
}

/* Managed memory may reside on the host, but all of it can migrate to the device, so it is charged in full. What
 * exceeds the limit is charged as host-backed memory. */
CUresult cuMemAllocManaged(CUdeviceptr *pointer, size_t bytes, unsigned int flags) {
  if (!control_enforces() || pointer == NULL) return driver.cuMemAllocManaged(pointer, bytes, flags);
  CUcontext context;
  struct memory_reservation reservation;
  bool valid = flags == CU_MEM_ATTACH_GLOBAL || flags == CU_MEM_ATTACH_HOST || flags == CU_MEM_ATTACH_SINGLE;
  if (!memory_reserve_or_host_back(valid, &reservation, devices_current(&context), bytes, VGPU_DENIED_MANAGED))
    return CUDA_ERROR_OUT_OF_MEMORY;
  obstacles_add(VGPU_OBSTACLE_MANAGED);
  CUresult result = reservation.host_backed ? host_backed_allocate(pointer, &reservation, flags, VGPU_DENIED_MANAGED)
                                            : driver.cuMemAllocManaged(pointer, bytes, flags);
  return keep(&reservation, result, pointer, context);
}

CUresult cuMemFree_v2(CUdeviceptr pointer) {
  if (memory_passes_free()) return driver.cuMemFree_v2(pointer);
  struct track_entry entry;
  bool mine = memory_untrack_linear(pointer, &entry);
  bool pooled = !mine && memory_untrack(TRACK_POOLED, pointer, &entry);
  CUresult result = driver.cuMemFree_v2(pointer);
  if (mine) memory_finish_free(&entry, result == CUDA_SUCCESS);
  if (pooled) pools_finish_free(&entry, result == CUDA_SUCCESS);
  return result;
}

CUresult cuMemFree(CUdeviceptr_v1 pointer) {
  if (!control_enforces()) return driver.cuMemFree(pointer);
  struct track_entry entry;
  bool mine = memory_untrack(TRACK_MEMORY, pointer, &entry);
  CUresult result = driver.cuMemFree(pointer);
  if (mine) memory_finish_free(&entry, result == CUDA_SUCCESS);
  return result;
}

/* Memory of another API in this process, for example Vulkan. Its creation was not charged, so the import is. */
CUresult cuImportExternalMemory(CUexternalMemory *memory, const CUDA_EXTERNAL_MEMORY_HANDLE_DESC *description) {
  if (!control_enforces() || memory == NULL || description == NULL)
    return driver.cuImportExternalMemory(memory, description);
  CUcontext context;
  struct memory_reservation reservation;
  if (!memory_reserve(&reservation, devices_current(&context), description->size, VGPU_DENIED_EXTERNAL))
    return CUDA_ERROR_OUT_OF_MEMORY;
  obstacles_add(VGPU_OBSTACLE_EXTERNAL);
  CUresult result = driver.cuImportExternalMemory(memory, description);
  if (result == CUDA_SUCCESS) {
    if (memory_track(&reservation, TRACK_EXTERNAL, (uint64_t)*memory, (uint64_t)context)) return result;
    driver.cuDestroyExternalMemory(*memory);
    result = CUDA_ERROR_OUT_OF_MEMORY;
  }
  memory_cancel(&reservation);
  return result;
}

CUresult cuDestroyExternalMemory(CUexternalMemory memory) {
  if (!control_enforces()) return driver.cuDestroyExternalMemory(memory);
  struct track_entry entry;
  bool mine = memory_untrack(TRACK_EXTERNAL, (uint64_t)memory, &entry);
  CUresult result = driver.cuDestroyExternalMemory(memory);
  if (mine) memory_finish_free(&entry, result == CUDA_SUCCESS);
  return result;
}
