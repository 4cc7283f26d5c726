/* The limits file as the library reads it: mapped once, read again for every decision. */
#ifndef VGPU_LIMITS_H
#define VGPU_LIMITS_H

#include "vgpu_abi.h"
#include <stdbool.h>

enum limits_status {
  /* nothing to enforce: no directory and the process runs on the node itself, or the slice is unenforced */
  LIMITS_ABSENT,
  LIMITS_PRESENT, /* mapped and valid */
  /* the directory exists but the limits are missing or invalid: the library must not fall back to unlimited use */
  LIMITS_BROKEN,
};

/* Maps the file. If it is broken, `*why` is a short reason for the log. */
enum limits_status limits_open(const struct vgpu_limits **file, const char **why);

/* Whether the slice of this process may be suspended. */
bool limits_are_suspendable(void);

/* Whether the mapped file is still at its path for this process: not after chroot, or behind another mount. */
bool limits_are_in_reach(void);

/* Reads a consistent copy of the live part of one device. */
void limits_read(const struct vgpu_limits *file, uint32_t device, struct vgpu_device_live *live);

/* Bytes that allocations may use: the limit minus the driver's overhead; UINT64_MAX when memory is not limited. */
static inline uint64_t limits_memory_budget(const struct vgpu_device_live *live) {
  if (live->memory_limit_bytes == 0) return UINT64_MAX;
  if (live->driver_overhead_bytes >= live->memory_limit_bytes) return 0;
  return live->memory_limit_bytes - live->driver_overhead_bytes;
}

/* The same for the current limits of a device. Every allocation asks, so it reads only what it needs. */
static inline uint64_t limits_budget_now(const struct vgpu_limits *file, uint32_t device) {
  uint32_t sequence = __atomic_load_n(&file->header.sequence, __ATOMIC_ACQUIRE);
  const struct vgpu_device_live *live = &file->live[sequence & 1][device];
  const struct vgpu_device_live memory = {
      .memory_limit_bytes = __atomic_load_n(&live->memory_limit_bytes, __ATOMIC_RELAXED),
      .driver_overhead_bytes = __atomic_load_n(&live->driver_overhead_bytes, __ATOMIC_RELAXED),
  };
  __atomic_thread_fence(__ATOMIC_ACQUIRE);
  if (__builtin_expect(__atomic_load_n(&file->header.sequence, __ATOMIC_RELAXED) == sequence, 1))
    return limits_memory_budget(&memory);
  struct vgpu_device_live changed;
  limits_read(file, device, &changed);
  return limits_memory_budget(&changed);
}

/* Whether launches on this device must be paced. */
bool limits_share_is_limited(const struct vgpu_device_live *live);

/* Whether the slice returns what it uses beyond its share to others on this GPU that left it, and gets back what it
 * left to them: a soft limit beside other slices with one. */
static inline bool limits_share_is_lent(const struct vgpu_device_live *live) {
  return live->soft_limit > live->share && live->high_count > 0 && live->priority != VGPU_PRIORITY_LOW;
}

/* Whether the agent's last steering values for this device are recent enough to be used. */
bool limits_steering_is_fresh(const struct vgpu_device_live *live, uint64_t now);

/* Index of the device with this UUID ("GPU-...") or, failing that, this PCI bus id; -1 if it is not listed. Either may
 * be NULL. */
int limits_find_device(const struct vgpu_limits *file, const char *uuid, const char *pci_bus_id);

#endif
