/*
 * Virtual memory management. Physical memory lives as long as a handle, a mapping or a descriptor of it exists in any
 * process. The charge therefore belongs to the physical allocation, which counts its references: handles that were
 * created, retained or imported, and mappings. Exported memory is charged as an object of the whole container
 * (objects.h).
 */
#include "control.h"
#include "devices.h"
#include "driver.h"
#include "memory.h"
#include "objects.h"
#include "obstacles.h"
#include "place.h"

/* Value of `link` in a physical allocation that was imported from outside of the container, or whose object is unknown.
 * Its size is unknown too, so its mappings are charged. */
#define FOREIGN 1u

static uint64_t next_physical;

static bool add_handle(CUmemGenericAllocationHandle handle, uint64_t physical) {
  struct track_entry entry = {.key = handle, .link = physical, .kind = TRACK_VMM_HANDLE, .references = 1};
  return track_add(&entry) == 0;
}

static void drop_physical(uint64_t physical) {
  struct track_entry last;
  if (track_refer(TRACK_VMM_PHYSICAL, physical, -1, &last) == 0 && last.kind != 0) memory_finish_free(&last, true);
}

/* Tracks a physical allocation and its first handle. */
static bool add_physical(struct track_entry *physical, CUmemGenericAllocationHandle handle) {
  physical->key = __atomic_add_fetch(&next_physical, 1, __ATOMIC_RELAXED);
  physical->kind = TRACK_VMM_PHYSICAL;
  physical->references = 1;
  if (track_add(physical) != 0) return false;
  if (add_handle(handle, physical->key)) return true;
  track_remove(TRACK_VMM_PHYSICAL, physical->key, physical);
  return false;
}

CUresult cuMemCreate(CUmemGenericAllocationHandle *handle, size_t bytes, const CUmemAllocationProp *properties,
                     unsigned long long flags) {
  int device =
      properties != NULL && control_enforces() ? place_of(properties->type, &properties->location) : PLACE_HOST;
  if (device == PLACE_HOST) return driver.cuMemCreate(handle, bytes, properties, flags);
  size_t step = 0;
  bool valid =
      handle != NULL && flags == 0 &&
      driver.cuMemGetAllocationGranularity(&step, properties, CU_MEM_ALLOC_GRANULARITY_MINIMUM) == CUDA_SUCCESS &&
      (step == 0 || bytes % step == 0);
  struct memory_reservation reservation;
  if (!memory_reserve_if(valid, &reservation, device, bytes, VGPU_DENIED_VMM)) return CUDA_ERROR_OUT_OF_MEMORY;
  if (properties->requestedHandleTypes != 0) obstacles_add(VGPU_OBSTACLE_SHARED);
  CUresult result = driver.cuMemCreate(handle, bytes, properties, flags);
  if (result == CUDA_SUCCESS) {
    struct track_entry physical = {.bytes = reservation.bytes, .device = (uint16_t)reservation.device};
    if (reservation.device == DEVICE_UNLISTED || (reservation.device >= 0 && add_physical(&physical, *handle)))
      return result;
    driver.cuMemRelease(*handle);
    result = CUDA_ERROR_OUT_OF_MEMORY;
  }
  memory_cancel(&reservation);
  return result;
}

CUresult cuMemRelease(CUmemGenericAllocationHandle handle) {
  if (!control_enforces()) return driver.cuMemRelease(handle);
  /* The handle may be reused as soon as the driver has released it, so the entry is removed first. */
  struct track_entry entry;
  bool last = track_refer(TRACK_VMM_HANDLE, handle, -1, &entry) == 0 && entry.kind != 0;
  bool mine = entry.kind != 0;
  CUresult result = driver.cuMemRelease(handle);
  if (result == CUDA_SUCCESS) {
    if (last) drop_physical(entry.link);
  } else if (last) {
    entry.references = 1;
    track_add(&entry);
  } else if (mine) {
    track_refer(TRACK_VMM_HANDLE, handle, 1, &entry);
  }
  return result;
}

/* The physical allocation of a handle, with one more reference; kind 0: not accounted. */
static struct track_entry refer_to(CUmemGenericAllocationHandle handle) {
  struct track_entry entry, physical = {.kind = 0};
  if (track_find(TRACK_VMM_HANDLE, handle, &entry)) track_refer(TRACK_VMM_PHYSICAL, entry.link, 1, &physical);
  return physical;
}

static bool reserve_mapping(struct memory_reservation *reservation, const struct track_entry *physical,
                            uint64_t bytes) {
  *reservation = (struct memory_reservation){.device = DEVICE_UNLISTED};
  if (physical->kind == 0 || physical->link != FOREIGN) return true;
  return memory_reserve(reservation, physical->device, bytes, VGPU_DENIED_VMM);
}

CUresult cuMemMap(CUdeviceptr address, size_t bytes, size_t offset, CUmemGenericAllocationHandle handle,
                  unsigned long long flags) {
  if (!control_enforces()) return driver.cuMemMap(address, bytes, offset, handle, flags);
  struct track_entry physical = refer_to(handle);
  struct memory_reservation reservation;
  CUresult result = CUDA_ERROR_OUT_OF_MEMORY;
  if (reserve_mapping(&reservation, &physical, bytes)) {
    result = driver.cuMemMap(address, bytes, offset, handle, flags);
    /* Mappings that are not charged are tracked as well, because one unmap may cover both kinds. */
    struct track_entry mapping = {
        .key = address,
        .bytes = bytes,
        .link = physical.kind == 0 ? 0 : physical.key,
        .kind = TRACK_VMM_MAPPING,
        .device = reservation.device >= 0 ? (uint16_t)(reservation.device + 1) : 0,
        .references = 1,
    };
    if (result == CUDA_SUCCESS && track_add(&mapping) == 0) return result;
    if (result == CUDA_SUCCESS) {
      driver.cuMemUnmap(address, bytes);
      result = CUDA_ERROR_OUT_OF_MEMORY;
    }
    memory_cancel(&reservation);
  }
  if (physical.kind != 0) drop_physical(physical.key);
  return result;
}

CUresult cuMemUnmap(CUdeviceptr address, size_t bytes) {
  CUresult result = driver.cuMemUnmap(address, bytes);
  struct track_entry entry;
  if (result != CUDA_SUCCESS || !control_enforces()) return result;
  /* One call may unmap several adjacent allocations. */
  for (CUdeviceptr at = address; at - address < bytes && track_remove(TRACK_VMM_MAPPING, at, &entry);
       at += entry.bytes) {
    if (entry.device != 0) ledger_give_back(&control.ledger, entry.device - 1u, entry.bytes);
    if (entry.link != 0) drop_physical(entry.link);
  }
  return result;
}

CUresult cuMemRetainAllocationHandle(CUmemGenericAllocationHandle *handle, void *address) {
  CUresult result = driver.cuMemRetainAllocationHandle(handle, address);
  struct track_entry mapping, known;
  if (result != CUDA_SUCCESS || !control_enforces()) return result;
  if (track_refer(TRACK_VMM_HANDLE, *handle, 1, &known) > 0) return result;
  if (!track_find(TRACK_VMM_MAPPING, (uint64_t)address, &mapping)) return result;
  if (track_refer(TRACK_VMM_PHYSICAL, mapping.link, 1, &known) > 0) add_handle(*handle, mapping.link);
  return result;
}

/* Memory exported as a descriptor stays charged until the last copy of the descriptor is closed. If that cannot be
 * tracked, it is charged as long as this process lives. */
static void exported(uint64_t physical, const void *shareable, CUmemAllocationHandleType type) {
  struct track_entry entry;
  uint64_t key = type == CU_MEM_HANDLE_TYPE_FABRIC ? objects_key(shareable, CU_IPC_HANDLE_SIZE) : 0;
  uint32_t object = memory_share(TRACK_VMM_PHYSICAL, physical, key);
  if (object != OBJECT_NONE && key != 0) objects_set_key(control.ledger.usage, object, key);
  if (object != OBJECT_NONE &&
      (key != 0 || objects_track_descriptor(control.ledger.usage, object, *(const int *)shareable)))
    return;
  track_refer(TRACK_VMM_PHYSICAL, physical, 1, &entry);
}

CUresult cuMemExportToShareableHandle(void *shareable, CUmemGenericAllocationHandle handle,
                                      CUmemAllocationHandleType type, unsigned long long flags) {
  if (control_enforces()) obstacles_add(VGPU_OBSTACLE_SHARED);
  CUresult result = driver.cuMemExportToShareableHandle(shareable, handle, type, flags);
  struct track_entry entry;
  bool followed = type == CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR || type == CU_MEM_HANDLE_TYPE_FABRIC;
  if (result == CUDA_SUCCESS && followed && control_enforces() && track_find(TRACK_VMM_HANDLE, handle, &entry))
    exported(entry.link, shareable, type);
  return result;
}

static uint32_t object_behind(void *shareable, CUmemAllocationHandleType type) {
  const struct ledger *ledger = &control.ledger;
  if (type == CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
    return objects_acquire_by_descriptor(ledger->usage, ledger->slot, (int)(intptr_t)shareable);
  if (type == CU_MEM_HANDLE_TYPE_FABRIC)
    return objects_acquire_by_key(ledger->usage, ledger->slot, objects_key(shareable, CU_IPC_HANDLE_SIZE));
  return OBJECT_NONE;
}

/* The device of memory imported from outside of the container. */
static int device_of(CUmemGenericAllocationHandle handle) {
  CUmemAllocationProp properties = {.type = CU_MEM_ALLOCATION_TYPE_INVALID};
  CUcontext context;
  if (driver.cuMemGetAllocationPropertiesFromHandle(&properties, handle) != CUDA_SUCCESS)
    return devices_current(&context);
  return place_of(properties.type, &properties.location);
}

static bool add_import(CUmemGenericAllocationHandle handle, uint32_t object) {
  struct track_entry physical = {.link = FOREIGN};
  if (object != OBJECT_NONE) {
    physical =
        (struct track_entry){.device = (uint16_t)objects_device(control.ledger.usage, object), .object = object + 1};
  } else {
    int device = device_of(handle);
    if (device < 0) return true;
    physical.device = (uint16_t)device;
  }
  return add_physical(&physical, handle);
}

CUresult cuMemImportFromShareableHandle(CUmemGenericAllocationHandle *handle, void *shareable,
                                        CUmemAllocationHandleType type) {
  if (!control_enforces()) return driver.cuMemImportFromShareableHandle(handle, shareable, type);
  obstacles_add(VGPU_OBSTACLE_SHARED);
  /* Before the driver call, which may close the descriptor. */
  uint32_t object = object_behind(shareable, type);
  CUresult result = driver.cuMemImportFromShareableHandle(handle, shareable, type);
  struct track_entry known;
  if (result == CUDA_SUCCESS) {
    /* The driver may return a handle that this process already has. */
    bool again = track_refer(TRACK_VMM_HANDLE, *handle, 1, &known) > 0;
    if (!again && add_import(*handle, object)) return result;
    if (!again) {
      driver.cuMemRelease(*handle);
      result = CUDA_ERROR_OUT_OF_MEMORY;
    }
  }
  if (object != OBJECT_NONE) objects_release(control.ledger.usage, control.ledger.slot, object);
  return result;
}
