#include "ledger.h"
#include "fork.h"
#include "lock.h"
#include "objects.h"
#include "os.h"
#include <errno.h>

/* How often a reservation checks again before it accepts a refusal that a race may have caused. */
#define REFUSAL_CHECKS 8
/* Longer than the periods of CPU limits, in which a process may be stopped in the middle of a reservation. */
#define PATIENCE_NS 1000000000ull
#define RECLAIM_EVERY_ROUNDS 64 /* the first of them only spin */

struct sums {
  uint64_t held;
  uint64_t tentative;
  uint64_t tentative_before; /* of slots with priority when reservations collide */
};

/* One account: memory on one device, or host-backed memory. Each process slot has two words in it, the held and the
 * tentative bytes. The words of consecutive slots are `stride` bytes apart. */
struct account {
  uint64_t *first;
  size_t stride;
  int device; /* NO_DEVICE: host-backed memory, which is never shared between processes */
};

#define NO_DEVICE (-1)
#define TENTATIVE 1 /* index of the second word, the tentative bytes */

_Static_assert(offsetof(struct vgpu_ledger_entry, tentative_bytes) ==
                   offsetof(struct vgpu_ledger_entry, held_bytes) + TENTATIVE * sizeof(uint64_t),
               "a line of the account of a device");
_Static_assert(offsetof(struct vgpu_process_slot, host_backed_tentative_bytes) ==
                   offsetof(struct vgpu_process_slot, host_backed_bytes) + TENTATIVE * sizeof(uint64_t),
               "a line of the account of host-backed memory");

static inline struct account account_of(const struct ledger *ledger, uint32_t device) {
  return (struct account){&ledger->usage->ledger[device][0].held_bytes, sizeof(struct vgpu_ledger_entry), (int)device};
}

static inline struct account host_backed_account(const struct ledger *ledger) {
  return (struct account){&ledger->usage->slots[0].host_backed_bytes, sizeof(struct vgpu_process_slot), NO_DEVICE};
}

static inline uint64_t *line_of(const struct account *account, uint32_t slot) {
  return (uint64_t *)((char *)account->first + slot * account->stride);
}

static uint64_t add_saturating(uint64_t a, uint64_t b) {
  return a + b < a ? UINT64_MAX : a + b;
}

static inline uint64_t shared(const struct ledger *ledger, const struct account *account) {
  return account->device == NO_DEVICE ? 0 : objects_charged(ledger->usage, (uint32_t)account->device);
}

static inline struct sums sum(const struct ledger *ledger, const struct account *account) {
  struct sums sums = {shared(ledger, account), 0, 0};
  uint32_t high = usage_slot_high(ledger->usage);
  for (uint32_t i = 0; i < high; i++) {
    const uint64_t *line = line_of(account, i);
    /* This order matters: a reservation moves from tentative to held, so the sum may count it twice but never misses
     * it. */
    uint64_t tentative = __atomic_load_n(&line[TENTATIVE], __ATOMIC_ACQUIRE);
    sums.held = add_saturating(sums.held, __atomic_load_n(line, __ATOMIC_ACQUIRE));
    sums.tentative = add_saturating(sums.tentative, tentative);
    if (i < ledger->slot) sums.tentative_before = add_saturating(sums.tentative_before, tentative);
  }
  return sums;
}

/* After this call the sums of all other processes include the bytes, and a sum taken next includes what other processes
 * announced earlier. */
static void announce(uint64_t *line, uint64_t bytes) {
  __atomic_fetch_add(&line[TENTATIVE], bytes, __ATOMIC_SEQ_CST);
#if !defined(__x86_64__) /* where the addition itself is a barrier */
  __atomic_thread_fence(__ATOMIC_SEQ_CST);
#endif
}

static void withdraw(uint64_t *line, uint64_t bytes) {
  __atomic_fetch_sub(&line[TENTATIVE], bytes, __ATOMIC_RELEASE);
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

static void accept(const struct ledger *ledger, const struct account *account, uint64_t bytes,
                   const struct sums *sums) {
  uint64_t *line = line_of(account, ledger->slot);
  __atomic_fetch_add(line, bytes, __ATOMIC_RELEASE);
  withdraw(line, bytes);
  if (account->device != NO_DEVICE) raise_peak(ledger, (uint32_t)account->device, add_saturating(sums->held, bytes));
}

/* Reclaims the tentative bytes of processes that died before their reservation was granted or refused. */
static void reclaim_dead(const struct ledger *ledger) {
  struct process_identity self;
  process_self(&self);
  usage_reclaim_rarely(ledger->usage, &self);
}

/*
 * Resolves concurrent reservations that do not all fit. One thread per process takes part, and lower slots have
 * priority: the other processes announce no bytes and wait until the reservations of the lower slots are granted or
 * refused. Bytes that do not fit beside the held bytes are not announced either, so no process waits for them. If a
 * process is killed during its reservation, a waiting process reclaims its slot. If a process is only stopped, for
 * example by a CPU limit, the others wait until it continues, at most PATIENCE_NS.
 */
static int reserve_contended(const struct ledger *ledger, const struct account *account, uint64_t bytes,
                             uint64_t budget) {
  uint64_t *line = line_of(account, ledger->slot);
  uint64_t until_ns = os_now_ns() + PATIENCE_NS;
  int result = -ENOMEM;
  bool announced = false;
  unsigned refusals = 0;
  lock_take(&contended);
  for (unsigned round = 1; refusals < REFUSAL_CHECKS; round++) {
    struct sums sums = sum(ledger, account);
    bool refused = add_saturating(sums.held, bytes) > budget;
    if (!refused && !announced && sums.tentative_before == 0) {
      announce(line, bytes);
      announced = true;
      continue;
    }
    if (announced && fits(&sums, budget)) {
      accept(ledger, account, bytes, &sums);
      announced = false;
      result = 0;
      break;
    }
    if (announced && (refused || sums.tentative_before > 0)) {
      withdraw(line, bytes);
      announced = false;
    }
    if (refused) {
      refusals++;
      continue;
    }
    if (round % RECLAIM_EVERY_ROUNDS == 0) {
      if (os_now_ns() > until_ns) break;
      reclaim_dead(ledger);
    }
    os_backoff(round);
  }
  if (announced) withdraw(line, bytes);
  lock_release(&contended);
  return result;
}

static inline uint64_t held(const struct ledger *ledger, const struct account *account) {
  uint64_t held_bytes = shared(ledger, account);
  uint32_t high = usage_slot_high(ledger->usage);
  for (uint32_t i = 0; i < high; i++)
    held_bytes = add_saturating(held_bytes, __atomic_load_n(line_of(account, i), __ATOMIC_ACQUIRE));
  return held_bytes;
}

/* Without a limit no other process can be refused, so the bytes need not be tentative first. */
static inline int reserve_unlimited(const struct ledger *ledger, const struct account *account, uint64_t bytes) {
  __atomic_fetch_add(line_of(account, ledger->slot), bytes, __ATOMIC_RELEASE);
  raise_peak(ledger, (uint32_t)account->device, held(ledger, account));
  return 0;
}

static inline int reserve(const struct ledger *ledger, const struct account *account, uint64_t bytes, uint64_t budget) {
  uint64_t *line = line_of(account, ledger->slot);
  if (bytes > budget) return -ENOMEM;
  if (budget == UINT64_MAX && account->device != NO_DEVICE) return reserve_unlimited(ledger, account, bytes);
  announce(line, bytes);
  struct sums sums = sum(ledger, account);
  if (fits(&sums, budget)) {
    accept(ledger, account, bytes, &sums);
    return 0;
  }
  withdraw(line, bytes);
  return reserve_contended(ledger, account, bytes, budget);
}

static void give_back(uint64_t *held, uint64_t bytes) {
  uint64_t before = __atomic_load_n(held, __ATOMIC_RELAXED);
  /* Saturating: a container that corrupts its file must not wrap its own count around. */
  while (!__atomic_compare_exchange_n(held, &before, before > bytes ? before - bytes : 0, false, __ATOMIC_RELEASE,
                                      __ATOMIC_RELAXED)) {
  }
}

int ledger_reserve(const struct ledger *ledger, uint32_t device, uint64_t bytes, uint64_t budget) {
  struct account account = account_of(ledger, device);
  return reserve(ledger, &account, bytes, budget);
}

void ledger_give_back(const struct ledger *ledger, uint32_t device, uint64_t bytes) {
  give_back(&ledger->usage->ledger[device][ledger->slot].held_bytes, bytes);
}

void ledger_force(const struct ledger *ledger, uint32_t device, uint64_t bytes) {
  __atomic_fetch_add(&ledger->usage->ledger[device][ledger->slot].held_bytes, bytes, __ATOMIC_SEQ_CST);
  raise_peak(ledger, device, ledger_held(ledger, device));
}

uint64_t ledger_held(const struct ledger *ledger, uint32_t device) {
  struct account account = account_of(ledger, device);
  return held(ledger, &account);
}

int ledger_reserve_host_backed(const struct ledger *ledger, uint64_t bytes, uint64_t budget) {
  struct account account = host_backed_account(ledger);
  return reserve(ledger, &account, bytes, budget);
}

void ledger_give_back_host_backed(const struct ledger *ledger, uint64_t bytes) {
  give_back(&ledger->usage->slots[ledger->slot].host_backed_bytes, bytes);
}

uint64_t ledger_host_backed(const struct ledger *ledger) {
  struct account account = host_backed_account(ledger);
  return held(ledger, &account);
}

static void reset(void) {
  contended.taken = 0;
}
AFTER_FORK(reset)
