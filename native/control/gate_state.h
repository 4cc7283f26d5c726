/*
 * What a launch has to know before it knows anything else: one cache line, written seldom and read by every launch. All
 * of it is atomic; a reader that sees a new `sequence` sees what was made from it.
 */
#ifndef VGPU_GATE_STATE_H
#define VGPU_GATE_STATE_H

#include <stdatomic.h>
#include <stdint.h>

#define GATE_OPEN (-2) /* as a device: no device is limited */

struct gate {
  _Atomic(const uint32_t *) sequence_at; /* of the limits; before there are any, of nothing that ever changes */
  _Atomic uint32_t sequence;             /* that the rest was made from */
  _Atomic int64_t open_at;               /* the same while no device is limited; else none that there is */
  _Atomic int32_t device;   /* the only one that launches can be on, DEVICE_UNLISTED: ask each time, or GATE_OPEN */
  _Atomic uint32_t detours; /* reasons why every launch has to go the long way now: captures, overlapping streams */
};

extern struct gate gate __attribute__((visibility("hidden")));

/* The sequence of the limits as it is now. */
static inline uint32_t gate_sequence_now(void) {
  return __atomic_load_n(atomic_load_explicit(&gate.sequence_at, memory_order_relaxed), __ATOMIC_RELAXED);
}

#endif
