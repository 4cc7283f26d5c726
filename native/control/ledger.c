#include "ledger.h"
#include "fork.h"
#include "lock.h"
#include "objects.h"
#include "os.h"
#include <errno.h>

/* How often a reservation checks again before it accepts a refusal that a race may have caused. */
#define REFUSAL_CHECKS 8
#define CONTENDED_ROUNDS 1024

struct sums {
  uint64_t held;
  uint64_t tentative;
  uint64_t tentative_before; /* of slots with priority when reservations collide */
};

static struct vgpu_ledger_entry *entry_of(const struct ledger *ledger, uint32_t device) {
  return &ledger->usage->ledger[device][ledger->slot];
}

static uint64_t add_saturating(uint64_t a, uint64_t b) {
  return a + b < a ? UINT64_MAX : a + b;
}

static struct sums sum(const struct ledger *ledger, uint32_t device) {
  struct sums sums = {objects_charged(ledger->usage, device), 0, 0};
  const struct vgpu_ledger_entry *entries = ledger->usage->ledger[device];
  uint32_t high = usage_slot_high(ledger->usage);
  for (uint32_t i = 0; i < high; i++) {
    /* This order matters: a reservation moves from tentative to held, so the sum may count it twice but never misses
     * it. */
    uint64_t tentative = __atomic_load_n(&entries[i].tentative_bytes, __ATOMIC_ACQUIRE);
    sums.held = add_saturating(sums.held, __atomic_load_n(&entries[i].held_bytes, __ATOMIC_ACQUIRE));
    sums.tentative = add_saturating(sums.tentative, tentative);
    if (i < ledger->slot) sums.tentative_before = add_saturating(sums.tentative_before, tentative);
  }
  return sums;
}

/* After this call the sums of all other processes include the bytes, and a sum taken next includes what other processes
 * announced earlier. */
static void announce(struct vgpu_ledger_entry *entry, uint64_t bytes) {
  __atomic_fetch_add(&entry->tentative_bytes, bytes, __ATOMIC_SEQ_CST);
  __atomic_thread_fence(__ATOMIC_SEQ_CST);
}

static void withdraw(struct vgpu_ledger_entry *entry, uint64_t bytes) {
  __atomic_fetch_sub(&entry->tentative_bytes, bytes, __ATOMIC_RELEASE);
}

static bool fits(const struct sums *sums, uint64_t budget) {
  return add_saturating(sums->held, sums->tentative) <= budget;
}

static struct lock contended;

static void raise_peak(const struct ledger *ledger, uint32_t device, uint64_t held) {
  uint64_t *peak = &ledger->usage->devices[device].peak_bytes;
  uint64_t seen = __atomic_load_n(peak, __ATOMIC_RELAXED);
  while (held > seen && !__atomic_compare_exchange_n(peak, &seen, held, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
  }
}

static void accept(const struct ledger *ledger, uint32_t device, uint64_t bytes, const struct sums *sums) {
  struct vgpu_ledger_entry *entry = entry_of(ledger, device);
  __atomic_fetch_add(&entry->held_bytes, bytes, __ATOMIC_RELEASE);
  withdraw(entry, bytes);
  raise_peak(ledger, device, add_saturating(sums->held, bytes));
}

/*
 * Resolves concurrent reservations that do not all fit. One thread per process takes part, and lower slots have
 * priority: the others withdraw until those are decided. A process that is stopped in the middle delays the others only
 * by one round of backoff.
 */
static int reserve_contended(const struct ledger *ledger, uint32_t device, uint64_t bytes, uint64_t budget) {
  struct vgpu_ledger_entry *entry = entry_of(ledger, device);
  int result = -ENOMEM;
  unsigned refusals = 0;
  lock_take(&contended);
  announce(entry, bytes);
  for (unsigned round = 0; round < CONTENDED_ROUNDS && result != 0; round++) {
    struct sums sums = sum(ledger, device);
    if (fits(&sums, budget)) {
      accept(ledger, device, bytes, &sums);
      result = 0;
    } else if (add_saturating(sums.held, bytes) > budget) {
      if (++refusals >= REFUSAL_CHECKS) break;
    } else if (sums.tentative_before > 0) {
      withdraw(entry, bytes);
      os_backoff(round);
      announce(entry, bytes);
    } else {
      os_backoff(round);
    }
  }
  if (result != 0) withdraw(entry, bytes);
  lock_release(&contended);
  return result;
}

int ledger_reserve(const struct ledger *ledger, uint32_t device, uint64_t bytes, uint64_t budget) {
  struct vgpu_ledger_entry *entry = entry_of(ledger, device);
  if (bytes > budget) return -ENOMEM;
  announce(entry, bytes);
  struct sums sums = sum(ledger, device);
  if (fits(&sums, budget)) {
    accept(ledger, device, bytes, &sums);
    return 0;
  }
  withdraw(entry, bytes);
  return reserve_contended(ledger, device, bytes, budget);
}

void ledger_give_back(const struct ledger *ledger, uint32_t device, uint64_t bytes) {
  uint64_t *held = &entry_of(ledger, device)->held_bytes;
  uint64_t before = __atomic_load_n(held, __ATOMIC_RELAXED);
  /* Saturating: a container that corrupts its file must not wrap its own count around. */
  while (!__atomic_compare_exchange_n(held, &before, before > bytes ? before - bytes : 0, false, __ATOMIC_RELEASE,
                                      __ATOMIC_RELAXED)) {
  }
}

void ledger_force(const struct ledger *ledger, uint32_t device, uint64_t bytes) {
  __atomic_fetch_add(&entry_of(ledger, device)->held_bytes, bytes, __ATOMIC_SEQ_CST);
  raise_peak(ledger, device, ledger_held(ledger, device));
}

uint64_t ledger_held(const struct ledger *ledger, uint32_t device) {
  uint64_t held = objects_charged(ledger->usage, device);
  const struct vgpu_ledger_entry *entries = ledger->usage->ledger[device];
  uint32_t high = usage_slot_high(ledger->usage);
  for (uint32_t i = 0; i < high; i++)
    held = add_saturating(held, __atomic_load_n(&entries[i].held_bytes, __ATOMIC_ACQUIRE));
  return held;
}

static void reset(void) {
  contended.taken = 0;
}
AFTER_FORK(reset)
