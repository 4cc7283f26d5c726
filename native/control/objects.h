/* Memory shared between processes of the container: exported by one, imported by others. It is charged once, in a table
 * next to the ledger, while a process holds it or a descriptor of it is open. See struct vgpu_object. */
#ifndef VGPU_OBJECTS_H
#define VGPU_OBJECTS_H

#include "vgpu_abi.h"
#include <stdbool.h>

#define OBJECT_NONE UINT32_MAX

/* Hash of an exported handle, by which importers find the object. Never 0. */
uint64_t objects_key(const void *handle, size_t size);

/* Registers `bytes` of a device as an object held by the calling process in `slot`. The object is charged from then on,
 * so the caller gives its own charge back. OBJECT_NONE: the table is full. */
uint32_t objects_create(struct vgpu_usage *usage, uint32_t slot, uint32_t device, uint64_t bytes, uint64_t key);

/* Adds a reference of the calling process to the object with that key, or to the object of the descriptor. OBJECT_NONE:
 * there is none. */
uint32_t objects_acquire_by_key(struct vgpu_usage *usage, uint32_t slot, uint64_t key);
uint32_t objects_acquire_by_descriptor(struct vgpu_usage *usage, uint32_t slot, int fd);

/* Drops one reference of the calling process. */
void objects_release(struct vgpu_usage *usage, uint32_t slot, uint32_t object);

/* Sets an additional key for importers. */
void objects_set_key(struct vgpu_usage *usage, uint32_t object, uint64_t key);

/* Registers a descriptor of an object that this process holds: the object is charged until all its descriptors are
 * closed. False: the descriptor cannot be tracked. */
bool objects_track_descriptor(struct vgpu_usage *usage, uint32_t object, int fd);

/* The device of the memory. */
uint32_t objects_device(const struct vgpu_usage *usage, uint32_t object);

/* Bytes charged for objects on a device. One load while nothing was ever shared. */
uint64_t objects_charged_slowly(const struct vgpu_usage *usage, uint32_t device);
static inline uint64_t objects_charged(const struct vgpu_usage *usage, uint32_t device) {
  if (__builtin_expect(__atomic_load_n(&usage->header.object_high, __ATOMIC_ACQUIRE) == 0, 1)) return 0;
  return objects_charged_slowly(usage, device);
}

/* Releases objects whose descriptors have all been closed; true if that freed memory. `slot`: of the calling process;
 * any other number if it has none. */
bool objects_release_closed(struct vgpu_usage *usage, uint32_t slot);

/* Drops all references of a process that has ended. */
void objects_drop_slot(struct vgpu_usage *usage, uint32_t slot);

#endif
