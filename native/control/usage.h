/* The usage file: memory shared by all processes of the container, and the slot of this process in it. */
#ifndef VGPU_USAGE_H
#define VGPU_USAGE_H

#include "process.h"
#include "vgpu_abi.h"

#define USAGE_NO_SLOT UINT32_MAX

/* Maps the usage file and creates it if the agent did not. NULL on failure; `*why` is then a short reason. */
struct vgpu_usage *usage_open(const char **why);

/* Takes a slot for the calling process; USAGE_NO_SLOT when living processes hold all slots. */
uint32_t usage_register(struct vgpu_usage *usage, const struct process_identity *self);

/* Notes by how much a charge of this process moved the level, and since when work of it may be incomplete (0: it is
 * complete). */
void usage_note_charge(struct vgpu_ledger_entry *entry, uint64_t wall_ns);
void usage_note_launched(struct vgpu_ledger_entry *entry, uint64_t since_ns, bool unknown);

/* Whether another process than that of `slot` lately passed a launch of unknown cost to a device, which may still run.
 */
bool usage_unknown_runs(const struct vgpu_usage *usage, uint32_t device, uint32_t slot, uint64_t now);

/* Frees the slots of dead processes: their memory, and what of their charges they did not use. What they used is
 * charged. Returns the number of slots
 * freed. */
unsigned usage_reclaim(struct vgpu_usage *usage, const struct process_identity *self);

/* Calls usage_reclaim at most ten times a second; true when it was called now. */
bool usage_reclaim_rarely(struct vgpu_usage *usage, const struct process_identity *self);

/* The first slot that was never used. */
static inline uint32_t usage_slot_high(const struct vgpu_usage *usage) {
  uint32_t high = __atomic_load_n(&usage->header.slot_high, __ATOMIC_ACQUIRE);
  return high < VGPU_MAX_PROCESSES ? high : VGPU_MAX_PROCESSES;
}

/* How many processes have launched on a device, among those whose slots were not reclaimed. */
uint32_t usage_launchers(const struct vgpu_usage *usage, uint32_t device);

static inline void usage_count(uint64_t *counter, uint64_t by) {
  __atomic_fetch_add(counter, by, __ATOMIC_RELAXED);
}
static inline void usage_count_32(uint32_t *counter, uint32_t by) {
  __atomic_fetch_add(counter, by, __ATOMIC_RELAXED);
}

#endif
