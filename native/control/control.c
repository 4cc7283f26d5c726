#define _GNU_SOURCE
#include "control.h"
#include "driver.h"
#include "fork.h"
#include "gate_state.h"
#include "lock.h"
#include "log.h"
#include "os.h"
#include "session.h"
#include <pthread.h>

struct control control = {.ledger = {.slot = USAGE_NO_SLOT}};

static struct lock starting;
static bool started;
static bool fork_handled;

static void in_child(void) {
  starting.taken = 0;
  /* Neither the contexts nor the process slot of the parent belong to the child. */
  control.ledger.slot = USAGE_NO_SLOT;
  fork_reset();
}

static void handle_fork(void) {
  if (!fork_handled) fork_handled = pthread_atfork(NULL, NULL, in_child) == 0;
}

/* Programs that find no GPU ask again and again, so a reason is logged when it is new. */
static bool refuse(const char *what, const char *why) {
  static const char *told;
  if (why != told) log_line(VGPU_LOG_ERROR, what, why);
  told = why;
  return false;
}

static bool join(void) {
  process_self(&control.self);
  uint32_t slot = usage_register(control.ledger.usage, &control.self);
  if (slot == USAGE_NO_SLOT) return refuse("cannot register: ", "all process slots of the container are taken");
  __atomic_store_n(&control.ledger.slot, slot, __ATOMIC_RELEASE);
  if (driver_found()) control_note(VGPU_TEST_DRIVER_FOUND);
  if (session_open(control.self.pid, slot, control.self.start_ticks)) control_note(VGPU_TEST_SESSION_OPEN);
  return true;
}

static bool enforce(void) {
  const char *why;
  log_set_level(control.limits->header.log_level);
  control.memory_by_driver =
      (__atomic_load_n(&control.limits->header.policy, __ATOMIC_RELAXED) & VGPU_POLICY_MEMORY_BY_DRIVER) != 0;
  if (control.ledger.usage == NULL) control.ledger.usage = usage_open(&why);
  if (control.ledger.usage == NULL) return refuse("cannot enforce the limits: ", why);
  handle_fork();
  return join();
}

static enum control_mode decide(void) {
  const char *why;
  if (!driver_found()) {
    refuse("the driver was not found: ", "libcuda-origin.so.1 is not loaded");
    return CONTROL_BROKEN;
  }
  enum limits_status status = control.limits == NULL ? limits_open(&control.limits, &why) : LIMITS_PRESENT;
  switch (status) {
  case LIMITS_ABSENT:
    return CONTROL_PASSING;
  case LIMITS_BROKEN:
    refuse("cannot use " VGPU_CONTAINER_DIRECTORY "/" VGPU_LIMITS_FILE ": ", why);
    return CONTROL_BROKEN;
  case LIMITS_PRESENT:
    break;
  }
  return enforce() ? CONTROL_ENFORCING : CONTROL_BROKEN;
}

bool control_start(void) {
  lock_take(&starting);
  if (!started) control.mode = decide();
  /* What prevents a start can end: descriptors and process slots become free, files are written. */
  started = control.mode != CONTROL_BROKEN;
  bool may_run = control.mode != CONTROL_BROKEN;
  bool joined = control.mode != CONTROL_ENFORCING || control.ledger.slot != USAGE_NO_SLOT || join();
  lock_release(&starting);
  return may_run && joined;
}

bool control_join(void) {
  lock_take(&starting);
  bool joined = control.ledger.slot != USAGE_NO_SLOT || join();
  lock_release(&starting);
  return joined;
}

#define TURN_LOOK_NS 5000000

/* The driver holds the calls of a suspended process. A process that begins has nothing that the driver could hold. */
static void wait_for_turn(void) {
  while (__atomic_load_n(&control.limits->header.suspended, __ATOMIC_ACQUIRE) == VGPU_SUSPENDED_WAITS)
    os_sleep_until(os_now_ns() + TURN_LOOK_NS);
}

void control_notice(void) {
  uint32_t sequence = __atomic_load_n(&control.limits->header.sequence, __ATOMIC_ACQUIRE);
  if (__atomic_load_n(&control.limits->header.suspended, __ATOMIC_RELAXED) != VGPU_SUSPENDED_NOT)
    usage_count(&control.ledger.usage->header.asked, 1);
  wait_for_turn();
  atomic_store_explicit(&gate.noticed, sequence, memory_order_relaxed);
  uint32_t slot = __atomic_load_n(&control.ledger.slot, __ATOMIC_ACQUIRE);
  if (slot == USAGE_NO_SLOT) return;
  if (session_renew(control.self.pid, slot, control.self.start_ticks)) control_note(VGPU_TEST_SESSION_OPEN);
}

void control_note_work(void) {
  uint64_t *worked_at = &control.ledger.usage->header.worked_at_ns;
  uint64_t now = os_now_ns(), before = __atomic_load_n(worked_at, __ATOMIC_RELAXED);
  while (before < now &&
         !__atomic_compare_exchange_n(worked_at, &before, now, false, __ATOMIC_RELEASE, __ATOMIC_RELAXED)) {
  }
}

void control_note(uint32_t self_test) {
  uint32_t slot = control.ledger.slot;
  if (slot != USAGE_NO_SLOT)
    __atomic_fetch_or(&control.ledger.usage->slots[slot].self_test, self_test, __ATOMIC_RELAXED);
}
