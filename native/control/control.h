/* What this process is to the container: decided in cuInit, looked at by every hook. */
#ifndef VGPU_CONTROL_H
#define VGPU_CONTROL_H

#include "ledger.h"
#include "limits.h"
#include "process.h"
#include <stdbool.h>

enum control_mode {
  CONTROL_PASSING = 0, /* before cuInit, and where there is nothing to enforce */
  CONTROL_ENFORCING,
  CONTROL_BROKEN, /* the limits cannot be kept: cuInit fails */
};

struct control {
  enum control_mode mode;
  const struct vgpu_limits *limits;
  struct ledger ledger; /* slot USAGE_NO_SLOT: this process has yet to register (a child made by fork) */
  struct process_identity self;
};

extern struct control control __attribute__((visibility("hidden")));

/* Reads the limits and joins the container; false when cuInit has to fail. Once per process, later calls repeat the
 * answer. */
bool control_start(void);

/* The slow side of control_enforces: registers a child made by fork. */
bool control_join(void);

/* The limits' sequence moved: the agent that moved it may be a new one, which does not know this process. */
void control_renew(void);

/* Notes what the self test found, bits of enum vgpu_self_test. */
void control_note(uint32_t self_test);

/* Whether a hook has anything to do. */
static inline bool control_enforces(void) {
  if (__builtin_expect(control.mode != CONTROL_ENFORCING, 0)) return false;
  return __builtin_expect(control.ledger.slot != USAGE_NO_SLOT, 1) || control_join();
}

#endif
