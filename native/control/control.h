/* The role of this process in the container: decided in cuInit, read by every hook. */
#ifndef VGPU_CONTROL_H
#define VGPU_CONTROL_H

#include "ledger.h"
#include "limits.h"
#include "process.h"
#include <stdbool.h>

enum control_mode {
  CONTROL_PASSING = 0, /* before cuInit, and when there is nothing to enforce */
  CONTROL_ENFORCING,
  CONTROL_BROKEN, /* limits cannot be enforced now: cuInit fails */
};

struct control {
  enum control_mode mode;
  const struct vgpu_limits *limits;
  struct ledger ledger; /* slot USAGE_NO_SLOT: this process must still register (a child made by fork) */
  struct process_identity self;
  /* VGPU_POLICY_MEMORY_BY_DRIVER when this process started. It holds for the life of the process: memory that was
   * charged is given back, and memory that was not is not. */
  bool memory_by_driver;
};

extern struct control control __attribute__((visibility("hidden")));

/* Reads the limits and registers the process; false if cuInit must fail. The first success counts for the life of the
 * process; after a failure the next call decides anew. */
bool control_start(void);

/* Slow path of control_enforces: registers a child made by fork. */
bool control_join(void);

/* Called by the first call that sees a new sequence of the limits. If the agent suspends the slice, the call asks for
 * the GPU: it waits in the driver until the agent has resumed the slice. The agent may also have restarted and not know
 * this process, so the session is checked and reopened. */
void control_notice(void);

/* Called by launches, copies and allocations that see a new sequence: the agent learns that the slice is not idle. */
void control_note_work(void);

/* Records results of the self-test, bits of enum vgpu_self_test. */
void control_note(uint32_t self_test);

/* Whether hooks must enforce limits in this process. */
static inline bool control_enforces(void) {
  if (__builtin_expect(control.mode != CONTROL_ENFORCING, 0)) return false;
  return __builtin_expect(control.ledger.slot != USAGE_NO_SLOT, 1) || control_join();
}

#endif
