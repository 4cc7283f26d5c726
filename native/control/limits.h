/* The limits file as the library reads it: mapped once, read afresh whenever a decision is due. */
#ifndef VGPU_LIMITS_H
#define VGPU_LIMITS_H

#include "vgpu_abi.h"
#include <stdbool.h>

enum limits_status {
  LIMITS_ABSENT,  /* no directory, on the node itself: this is no container of ours */
  LIMITS_PRESENT, /* mapped and sound */
  LIMITS_BROKEN,  /* the directory is there, the limits are not: nothing may run as if it had a whole GPU */
};

/* Maps the file. `*why` says in a few words what is wrong when it is broken. */
enum limits_status limits_open(const struct vgpu_limits **file, const char **why);

/* The live part of one device, consistent. */
void limits_read(const struct vgpu_limits *file, uint32_t device, struct vgpu_device_live *live);

/* Bytes that allocations may take: limit less what the driver keeps for itself; UINT64_MAX when not limited. */
uint64_t limits_memory_budget(const struct vgpu_device_live *live);

/* Whether launches on this device have to be paced at all. */
bool limits_share_is_limited(const struct vgpu_device_live *live);

/* What the agent published about this device is recent enough to be believed. */
bool limits_steering_is_fresh(const struct vgpu_device_live *live, uint64_t now);

/* Index of the device with this UUID ("GPU-...") or else this PCI bus id, -1 if it is not listed. Either may be NULL.
 */
int limits_find_device(const struct vgpu_limits *file, const char *uuid, const char *pci_bus_id);

#endif
