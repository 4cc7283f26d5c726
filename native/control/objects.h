/*
 * Memory that several processes of the container may hold: exported by one, imported by others. It is charged once, in
 * a table beside the ledger, while any process holds it or a descriptor of it is open. See struct vgpu_object.
 */
#ifndef VGPU_OBJECTS_H
#define VGPU_OBJECTS_H

#include "vgpu_abi.h"
#include <stdbool.h>

#define OBJECT_NONE UINT32_MAX

/* What importers come with: never 0. */
uint64_t objects_key(const void *handle, size_t size);

/*
 * Lists `bytes` of a device as an object that the calling process, in `slot`, holds; they are charged from then on, so
 * the caller gives back what it was charged itself. OBJECT_NONE: the table is full.
 */
uint32_t objects_make(struct vgpu_usage *usage, uint32_t slot, uint32_t device, uint64_t bytes, uint64_t key);

/* The calling process holds an object once more: the one of that key, or that the descriptor stands for. OBJECT_NONE:
 * it is not known. */
uint32_t objects_hold_key(struct vgpu_usage *usage, uint32_t slot, uint64_t key);
uint32_t objects_hold_descriptor(struct vgpu_usage *usage, uint32_t slot, int fd);

/* It holds it once less. */
void objects_release(struct vgpu_usage *usage, uint32_t slot, uint32_t object);

/* Importers may come with this key too. */
void objects_set_key(struct vgpu_usage *usage, uint32_t object, uint64_t key);

/* A descriptor was made of an object that this process holds: it is charged until all are closed. False: that cannot be
 * followed. */
bool objects_described(struct vgpu_usage *usage, uint32_t object, int fd);

/* The device that the memory is on. */
uint32_t objects_device(const struct vgpu_usage *usage, uint32_t object);

/* What is charged for on a device. One load while nothing was ever shared. */
uint64_t objects_charged_slowly(const struct vgpu_usage *usage, uint32_t device);
static inline uint64_t objects_charged(const struct vgpu_usage *usage, uint32_t device) {
  if (__builtin_expect(__atomic_load_n(&usage->header.object_high, __ATOMIC_ACQUIRE) == 0, 1)) return 0;
  return objects_charged_slowly(usage, device);
}

/* Looks which descriptors have been closed; true if that freed anything. */
bool objects_settle(struct vgpu_usage *usage);

/* A process is gone, and with it what it held. */
void objects_drop_slot(struct vgpu_usage *usage, uint32_t slot);

#endif
