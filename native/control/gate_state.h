/* The state that the fast path of every launch reads: one cache line, rarely written. All fields are atomic. A reader
 * that sees a new `sequence` also sees the fields that were derived from it. */
#ifndef VGPU_GATE_STATE_H
#define VGPU_GATE_STATE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define GATE_OPEN (-2) /* as a device: no device is limited */

struct gate {
  _Atomic(const uint32_t *) sequence_at; /* sequence of the limits; points to a constant before limits are mapped */
  _Atomic uint32_t sequence;             /* sequence from which the other fields were derived */
  /* equals the sequence while no device is limited; otherwise a value that no sequence has */
  _Atomic int64_t open_at;
  /* the only device that launches can use, DEVICE_UNLISTED (look it up each time) or GATE_OPEN */
  _Atomic int32_t device;
  _Atomic uint32_t limited; /* one bit per device whose share is limited */
  _Atomic uint32_t
      slow_path_reasons;    /* number of reasons for all launches to take the slow path: captures, timing windows */
  _Atomic uint32_t noticed; /* sequence after which control_notice was last called; see watched_calls.S */
};

extern struct gate gate __attribute__((visibility("hidden")));

/* The current sequence of the limits. */
static inline uint32_t gate_sequence_now(void) {
  return __atomic_load_n(atomic_load_explicit(&gate.sequence_at, memory_order_relaxed), __ATOMIC_RELAXED);
}

/* The agent has published something that no call has noticed yet. */
static inline bool gate_has_news(void) {
  return gate_sequence_now() != atomic_load_explicit(&gate.noticed, memory_order_relaxed);
}

#endif
