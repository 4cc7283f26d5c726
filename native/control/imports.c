#include "imports.h"
#include "control.h"
#include "devices.h"
#include "driver.h"
#include "memory.h"
#include "objects.h"

bool imports_track(enum track_kind kind, CUdeviceptr pointer, CUcontext context, uint64_t key) {
  uint32_t object = objects_acquire_by_key(control.ledger.usage, control.ledger.slot, key);
  struct track_entry entry = {.key = pointer, .link = (uint64_t)context, .kind = (uint16_t)kind, .references = 1};
  struct memory_reservation reservation = {.device = DEVICE_UNLISTED};
  if (object != OBJECT_NONE) {
    entry.object = object + 1;
    entry.device = (uint16_t)objects_device(control.ledger.usage, object);
  } else {
    CUdeviceptr base;
    size_t bytes;
    if (driver.cuMemGetAddressRange_v2(&base, &bytes, pointer) != CUDA_SUCCESS) bytes = 0;
    if (!memory_reserve(&reservation, devices_of_pointer(pointer), bytes, VGPU_DENIED_ALLOC)) return false;
    if (reservation.device < 0) return true;
    entry.bytes = bytes;
    entry.device = (uint16_t)reservation.device;
  }
  if (track_add(&entry) == 0) return true;
  memory_cancel(&reservation);
  if (object != OBJECT_NONE) objects_release(control.ledger.usage, control.ledger.slot, object);
  return false;
}
