/*
 * Virtual memory management. Physical memory lives as long as a handle of it or a mapping does, so the charge belongs
 * to the object behind them, which is counted in references: handles that were made or retained, and mappings.
 */
#include "control.h"
#include "devices.h"
#include "driver.h"
#include "memory.h"

static uint64_t next_object;

static bool add_reference(enum track_kind kind, uint64_t key, uint64_t object, uint64_t bytes) {
  struct track_entry entry = {.key = key, .bytes = bytes, .link = object, .kind = (uint16_t)kind, .references = 1};
  return track_add(&entry) == 0;
}

static void drop_object(uint64_t object) {
  struct track_entry last;
  if (track_refer(TRACK_VMM_OBJECT, object, -1, &last) == 0 && last.kind != 0) memory_forgotten(&last, true);
}

static bool add_object(const struct memory_claim *claim, CUmemGenericAllocationHandle handle) {
  uint64_t object = __atomic_add_fetch(&next_object, 1, __ATOMIC_RELAXED);
  struct track_entry last;
  if (!memory_remember(claim, TRACK_VMM_OBJECT, object, 0)) return false;
  track_refer(TRACK_VMM_OBJECT, object, 1, &last);
  if (add_reference(TRACK_VMM_HANDLE, handle, object, 0)) return true;
  track_remove(TRACK_VMM_OBJECT, object, &last);
  return false;
}

CUresult cuMemCreate(CUmemGenericAllocationHandle *handle, size_t bytes, const CUmemAllocationProp *properties,
                     unsigned long long flags) {
  bool on_device = properties != NULL && properties->location.type == CU_MEM_LOCATION_TYPE_DEVICE;
  if (!on_device || !control_enforces()) return driver.cuMemCreate(handle, bytes, properties, flags);
  struct memory_claim claim;
  if (!memory_claim(&claim, devices_index(properties->location.id), bytes, VGPU_DENIED_VMM))
    return CUDA_ERROR_OUT_OF_MEMORY;
  CUresult result = driver.cuMemCreate(handle, bytes, properties, flags);
  if (result == CUDA_SUCCESS) {
    if (claim.device < 0 || add_object(&claim, *handle)) return result;
    driver.cuMemRelease(*handle);
    result = CUDA_ERROR_OUT_OF_MEMORY;
  }
  memory_release(&claim);
  return result;
}

CUresult cuMemRelease(CUmemGenericAllocationHandle handle) {
  if (!control_enforces()) return driver.cuMemRelease(handle);
  /* The number may be given out again as soon as the driver has it back: what it stood for is taken out first. */
  struct track_entry entry;
  bool last = track_refer(TRACK_VMM_HANDLE, handle, -1, &entry) == 0 && entry.kind != 0;
  bool mine = entry.kind != 0;
  CUresult result = driver.cuMemRelease(handle);
  if (result == CUDA_SUCCESS) {
    if (last) drop_object(entry.link);
  } else if (last) {
    entry.references = 1;
    track_add(&entry);
  } else if (mine) {
    track_refer(TRACK_VMM_HANDLE, handle, 1, &entry);
  }
  return result;
}

CUresult cuMemMap(CUdeviceptr address, size_t bytes, size_t offset, CUmemGenericAllocationHandle handle,
                  unsigned long long flags) {
  CUresult result = driver.cuMemMap(address, bytes, offset, handle, flags);
  struct track_entry entry = {.link = 0}, object;
  if (result != CUDA_SUCCESS || !control_enforces()) return result;
  /* An import is not charged here, but its mapping is remembered too: one unmap may cover both kinds. */
  if (track_find(TRACK_VMM_HANDLE, handle, &entry)) track_refer(TRACK_VMM_OBJECT, entry.link, 1, &object);
  if (add_reference(TRACK_VMM_MAPPING, address, entry.link, bytes)) return result;
  driver.cuMemUnmap(address, bytes);
  if (entry.link != 0) drop_object(entry.link);
  return CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult cuMemUnmap(CUdeviceptr address, size_t bytes) {
  CUresult result = driver.cuMemUnmap(address, bytes);
  struct track_entry entry;
  if (result != CUDA_SUCCESS || !control_enforces()) return result;
  /* One call may unmap several allocations that lie side by side. */
  for (CUdeviceptr at = address; at - address < bytes && track_remove(TRACK_VMM_MAPPING, at, &entry); at += entry.bytes)
    if (entry.link != 0) drop_object(entry.link);
  return result;
}

CUresult cuMemRetainAllocationHandle(CUmemGenericAllocationHandle *handle, void *address) {
  CUresult result = driver.cuMemRetainAllocationHandle(handle, address);
  struct track_entry mapping, known;
  if (result != CUDA_SUCCESS || !control_enforces()) return result;
  if (track_refer(TRACK_VMM_HANDLE, *handle, 1, &known) > 0) return result;
  if (!track_find(TRACK_VMM_MAPPING, (uint64_t)address, &mapping)) return result;
  if (track_refer(TRACK_VMM_OBJECT, mapping.link, 1, &known) > 0)
    add_reference(TRACK_VMM_HANDLE, *handle, mapping.link, 0);
  return result;
}
