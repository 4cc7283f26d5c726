/* Accounting shared by all allocating hooks: reserve in the ledger, count refusals, track what the driver allocated. */
#ifndef VGPU_MEMORY_H
#define VGPU_MEMORY_H

#include "control.h"
#include "cuda_abi.h"
#include "devices.h"
#include "track.h"
#include "vgpu_abi.h"
#include <stdbool.h>
#include <stdint.h>

struct memory_reservation {
  int device; /* index in the limits file; DEVICE_UNLISTED or DEVICE_NONE: not accounted */
  uint64_t bytes;
  bool host_backed; /* beyond the memory limit; the hook allocates it with host_backed_allocate */
};

/* The device that is charged for device memory: DEVICE_UNLISTED where the driver keeps the limit. */
static inline int memory_charged(int device) {
  return device >= 0 && control.memory_by_driver ? DEVICE_UNLISTED : device;
}

/* State of the checks below, which every allocation makes: the sequence of the limits at the last one, and whether
 * managed memory was charged beside the driver's limit. */
extern uint32_t memory_sequence __attribute__((visibility("hidden")));
extern bool memory_any_managed __attribute__((visibility("hidden")));
void memory_notice(uint32_t sequence);

/* A process that only allocates never passes the gate, which otherwise notices new limits. */
static inline void memory_notice_if_changed(void) {
  uint32_t sequence = __atomic_load_n(&control.limits->header.sequence, __ATOMIC_RELAXED);
  if (__builtin_expect(sequence != __atomic_load_n(&memory_sequence, __ATOMIC_RELAXED), 0)) memory_notice(sequence);
}

/* Whether a call for device memory needs nothing but the driver: the driver keeps the limit, or there is none. */
static inline bool memory_passes(void) {
  if (!control_enforces()) return true;
  if (!control.memory_by_driver) return false;
  memory_notice_if_changed();
  return true;
}

/* The same for a call that frees: no memory of this process was charged either. */
static inline bool memory_passes_free(void) {
  return memory_passes() && !__atomic_load_n(&memory_any_managed, __ATOMIC_RELAXED);
}

/*
 * Reserves `bytes` on `device` before the driver call. If they do not fit, memory of dead processes and unused memory
 * of pools is reclaimed first. On DEVICE_NONE nothing is reserved, because the driver rejects the call. The device of
 * the reservation is also DEVICE_NONE if `bytes` exceed what any GPU has: the driver knows which error that is, and
 * allocators act on it. If the driver accepts such a call, the hook undoes it. False: refused and counted; the hook
 * returns CUDA_ERROR_OUT_OF_MEMORY.
 */
bool memory_reserve(struct memory_reservation *reservation, int device, uint64_t bytes, enum vgpu_denied_api api);
/* The same for a call whose other arguments may be wrong. With `valid` false, what does not fit is left to the driver
 * too. */
bool memory_reserve_if(bool valid, struct memory_reservation *reservation, int device, uint64_t bytes,
                       enum vgpu_denied_api api);

/* Reserves like memory_reserve_if, with host-backed memory as the fallback: if `bytes` do not fit into the memory
 * limit, all of them are reserved beyond it, within the limit of host-backed memory. */
bool memory_reserve_or_host_back(bool valid, struct memory_reservation *reservation, int device, uint64_t bytes,
                                 enum vgpu_denied_api api);

/* Cancels a reservation after a failed driver call. */
void memory_cancel(const struct memory_reservation *reservation);

/* Counts a refusal for a reservation that the driver could not satisfy. */
void memory_count_denied(const struct memory_reservation *reservation, enum vgpu_denied_api api);

/* Adjusts a reservation to the `bytes` that the driver really used. False: that is more than was reserved and does not
 * fit; the refusal is counted and the reservation stays unchanged. */
bool memory_commit(struct memory_reservation *reservation, uint64_t bytes, enum vgpu_denied_api api);

/* Tracks a reservation under a key. False: the tracking table is full, or the driver allocated without a device; the
 * hook must undo the allocation. */
bool memory_track(const struct memory_reservation *reservation, enum track_kind kind, uint64_t key, uint64_t link);

/* memory_untrack removes the entry before the driver frees the memory. memory_finish_free then gives the bytes back, or
 * adds the entry again if the driver refused. */
bool memory_untrack(enum track_kind kind, uint64_t key, struct track_entry *entry);
/* Untracks a linear allocation, on the device or host-backed. */
bool memory_untrack_linear(CUdeviceptr pointer, struct track_entry *entry);
void memory_finish_free(const struct track_entry *entry, bool freed);

/* Marks the memory of an entry as shared: it is charged as an object (objects.h), which importers look up by
 * `object_key`. OBJECT_NONE: the object table is full, and the charge stays with this process. */
uint32_t memory_share(enum track_kind kind, uint64_t key, uint64_t object_key);

/* Drops all entries of a context that was destroyed. */
void memory_drop_context(CUcontext context);

/*
 * Charges memory that the driver has already allocated, if it fits. Does not trim pools and does not count a refusal.
 */
bool memory_charge(uint32_t device, uint64_t bytes);

/* What the driver takes from the GPU for an allocation of `bytes`: up to 1 MiB they share blocks, larger ones have
 * blocks of 2 MiB of their own. */
uint64_t memory_taken(uint64_t bytes);

/* The product of a and b, or UINT64_MAX on overflow: no limit has room for that. */
uint64_t memory_product(uint64_t a, uint64_t b);

/* The slice as programs see it: the limit, and the free part of it as one allocation can have it; where the driver
 * keeps the limit, all of it. False: the device is not limited. */
bool memory_view(int device, uint64_t *total, uint64_t *left);

/* Memory that is charged but unused. A module that keeps such memory registers these functions when the library is
 * loaded. */
struct memory_reclaimer {
  bool (*reclaim)(uint32_t device); /* frees unused memory; true if anything was freed */
  void (*update)(uint32_t device);  /* charges what the module keeps now */
};
void memory_register_reclaimer(const struct memory_reclaimer *reclaimer);

/* Sets the function that is called when a context ends and its own memory is given back. */
void memory_register_contexts(void (*ended)(uint32_t device));

#endif
