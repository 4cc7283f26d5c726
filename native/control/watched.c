#include "watched.h"
#include "control.h"
#include "driver.h"
#include "fork.h"
#include "forward.h"
#include "gate_state.h"
#include "limits.h"
#include "lock.h"
#include <stddef.h>

#if defined(__x86_64__)

_Static_assert(offsetof(struct gate, sequence_at) == 0, "watched_calls.S");
_Static_assert(offsetof(struct gate, noticed) == GATE_NOTICED, "watched_calls.S");

extern char watched_entries[WATCHED_CALLS][WATCHED_ENTRY_BYTES] __attribute__((visibility("hidden")));
void *watched_functions[WATCHED_CALLS] __attribute__((visibility("hidden")));
void watched_notice(void) __attribute__((visibility("hidden")));

#define SLOTS (sizeof driver / sizeof(void *))

static struct lock lock;
static uint32_t count;
static bool watches;
static bool sees_limits[SLOTS];

void watched_notice(void) {
  control_notice();
}

static void *entry_of(void *function) {
  uint32_t used = __atomic_load_n(&count, __ATOMIC_RELAXED);
  for (uint32_t i = 0; i < used; i++)
    if (watched_functions[i] == function) return watched_entries[i];
  if (used == WATCHED_CALLS) return function;
  watched_functions[used] = function;
  __atomic_store_n(&count, used + 1, __ATOMIC_RELEASE);
  return watched_entries[used];
}

void *watched(void *function) {
  if (!watches || function == NULL || function == (void *)driver_missing || watched_origin(function) != function)
    return function;
  lock_take(&lock);
  void *entry = entry_of(function);
  lock_release(&lock);
  return entry;
}

void *watched_origin(void *function) {
  uintptr_t offset = (uintptr_t)function - (uintptr_t)watched_entries;
  return offset < sizeof watched_entries ? watched_functions[offset / WATCHED_ENTRY_BYTES] : function;
}

void watched_except(void **slot) {
  sees_limits[slot - (void **)&driver] = true;
}

/* After the table of the driver was filled, and launches were excepted. */
__attribute__((constructor)) static void begin(void) {
  watches = limits_are_suspendable();
  void **slots = (void **)&driver;
  for (size_t i = 0; watches && i < SLOTS; i++)
    if (!sees_limits[i]) slots[i] = watched(slots[i]);
}

static void reset(void) {
  lock.taken = 0;
}
AFTER_FORK(reset)

#else

void watched_except(void **slot) {
  (void)slot;
}

void *watched(void *function) {
  return function;
}

void *watched_origin(void *function) {
  return function;
}

#endif

void *forward_target(const char *name) {
  return watched(driver_find(name));
}
