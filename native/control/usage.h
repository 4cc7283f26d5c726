/* The usage file: memory that all processes of the container share, and this process's line in it. */
#ifndef VGPU_USAGE_H
#define VGPU_USAGE_H

#include "process.h"
#include "vgpu_abi.h"

#define USAGE_NO_SLOT UINT32_MAX

/* Maps the usage file, makes it when the agent did not; NULL if that fails, `*why` then says so in a few words. */
struct vgpu_usage *usage_open(const char **why);

/* Takes a slot for the calling process; USAGE_NO_SLOT when all are taken by living processes. */
uint32_t usage_register(struct vgpu_usage *usage, const struct process_identity *self);

/* Gives back what processes hold that are gone: their memory, and the debt of their last charge. Returns how many there
 * were. */
unsigned usage_reclaim(struct vgpu_usage *usage, const struct process_identity *self);

/* The same, at most ten times a second: true when it was done now. */
bool usage_reclaim_rarely(struct vgpu_usage *usage, const struct process_identity *self);

/* The first slot that was never used. */
uint32_t usage_slot_high(const struct vgpu_usage *usage);

static inline void usage_count(uint64_t *counter, uint64_t by) {
  __atomic_fetch_add(counter, by, __ATOMIC_RELAXED);
}
static inline void usage_count_32(uint32_t *counter, uint32_t by) {
  __atomic_fetch_add(counter, by, __ATOMIC_RELAXED);
}

#endif
