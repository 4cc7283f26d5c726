#include "yield.h"
#include "activity.h"
#include "capture.h"
#include "control.h"
#include "driver.h"
#include "fork.h"
#include "os.h"
#include "peers.h"
#include "share_law.h"
#include "vgpu_abi.h"
#include <errno.h>
#include <string.h>

/* How often claims are read while a launch waits. */
#define POLL_NS 50000ull
/* After other slices interrupted work of this process, a launch waits at most this long until that work is complete:
 * earlier work on the GPU may itself wait for this thread. */
#define DRAIN_MOST_NS 50000000ull
/* Claims are accepted only for a part of the time. A slice that did not yield for a while yields for up to
 * BELIEF_BURST_NS at once. */
#define BELIEF_BURST_NS 200000000ull
#define BELIEF_PAUSE_NS 20000000ull
#define BELIEVED_WHOLE 100u
#define DEFAULT_FLOOR 500u

/* How long this process yielded to each other slice, as a bucket (see law_charge). */
static struct belief {
  uint64_t level_at_ns;
  uint64_t charged_until_ns;
  uint32_t spent; /* not accepted again until there is credit of BELIEF_PAUSE_NS */
} beliefs[VGPU_MAX_DEVICES][VGPU_MAX_HIGH];

/* A file that cannot be opened counts as a claim: a process without free descriptors would not yield otherwise, and the
 * other container gains no more by closing its file than by a claim. Without a file there is none. */
static bool claims(uint32_t device, uint32_t number, uint64_t now) {
  uint64_t claimed_until_ns[VGPU_MAX_PROCESSES];
  long read = peers_read(device, number, claimed_until_ns, sizeof claimed_until_ns,
                         offsetof(struct vgpu_activity, claimed_until_ns));
  if (read < 0) return read != -ENOENT;
  for (size_t i = 0; i < (size_t)read / sizeof claimed_until_ns[0]; i++)
    if (claimed_until_ns[i] > now && claimed_until_ns[i] - now <= VGPU_CLAIM_MOST_NS) return true;
  return false;
}

static uint32_t believed_of(uint32_t device, uint32_t number) {
  uint32_t believed = __atomic_load_n(&control.limits->devices[device].high_believed[number], __ATOMIC_RELAXED);
  return believed < BELIEVED_WHOLE ? believed : BELIEVED_WHOLE;
}

static bool is_believed(uint32_t device, uint32_t number, uint64_t now) {
  struct belief *belief = &beliefs[device][number];
  uint64_t level = __atomic_load_n(&belief->level_at_ns, __ATOMIC_RELAXED);
  bool spent = __atomic_load_n(&belief->spent, __ATOMIC_RELAXED) != 0;
  bool is_spent = level + (spent ? BELIEF_PAUSE_NS : 0) > now;
  if (is_spent != spent) __atomic_store_n(&belief->spent, is_spent, __ATOMIC_RELAXED);
  return !is_spent && believed_of(device, number) > 0;
}

/* Bit mask of the slices that have work and whose claims are accepted. */
static uint32_t claimants(uint32_t device, const struct vgpu_device_live *live, uint64_t now) {
  uint32_t count = live->high_count < VGPU_MAX_HIGH ? live->high_count : VGPU_MAX_HIGH;
  uint32_t found = 0;
  for (uint32_t i = 0; i < count; i++)
    if (is_believed(device, i, now) && claims(device, i, now)) found |= 1u << i;
  return found;
}

/* The waits of concurrent threads count once. */
static void charge_claimants(uint32_t device, uint32_t found, uint64_t from, uint64_t now) {
  for (uint32_t i = 0; found != 0; i++, found >>= 1) {
    uint32_t believed = believed_of(device, i);
    if ((found & 1) == 0 || believed == 0) continue;
    struct belief *belief = &beliefs[device][i];
    uint64_t charged = __atomic_exchange_n(&belief->charged_until_ns, now, __ATOMIC_RELAXED);
    if (charged < from) charged = from;
    if (charged >= now) continue;
    uint64_t level = __atomic_load_n(&belief->level_at_ns, __ATOMIC_RELAXED);
    if (level + BELIEF_BURST_NS < now) level = now - BELIEF_BURST_NS;
    __atomic_store_n(&belief->level_at_ns, level + (now - charged) * BELIEVED_WHOLE / believed, __ATOMIC_RELAXED);
  }
}

static bool has_work(CUstream stream) {
  return captures == 0 && driver.cuStreamQuery(stream) == CUDA_ERROR_NOT_READY;
}

static bool is_low(const struct vgpu_device_live *live) {
  return live->priority == VGPU_PRIORITY_LOW;
}

static bool gives_way(const struct vgpu_device_live *live) {
  return limits_share_is_limited(live) && (is_low(live) ? live->high_count > 0 : limits_share_is_lent(live));
}

/* Whether its floor, or what it has left to others, allows a launch in any case. */
static bool is_due(const struct vgpu_device_usage *usage, const struct vgpu_device_live *live, uint64_t now) {
  if (is_low(live)) return now >= __atomic_load_n(&usage->floor_at_ns, __ATOMIC_RELAXED);
  return !law_borrows(__atomic_load_n(&usage->lent_at_ns, __ATOMIC_RELAXED), now);
}

static uint64_t own_wall(const struct vgpu_device_live *live, uint64_t gpu_ns, uint64_t now) {
  uint32_t correction = limits_steering_is_fresh(live, now) ? live->correction_ppm : 0;
  return law_wall_ns(gpu_ns, law_effective_ppm(live->share, 0, 0), correction);
}

static void charge_own_share(struct vgpu_device_usage *usage, const struct vgpu_device_live *live, uint64_t gpu_ns,
                             uint64_t now) {
  uint64_t wall = own_wall(live, gpu_ns, now);
  uint64_t level = __atomic_load_n(&usage->lent_at_ns, __ATOMIC_RELAXED);
  while (!__atomic_compare_exchange_n(&usage->lent_at_ns, &level, law_lent(level, now, wall), false, __ATOMIC_RELAXED,
                                      __ATOMIC_RELAXED)) {
  }
}

void yield_adjust(uint32_t device, int64_t by_ns) {
  struct vgpu_device_usage *usage = &control.ledger.usage->devices[device];
  struct vgpu_device_live live;
  limits_read(control.limits, device, &live);
  if (!limits_share_is_lent(&live)) return;
  uint64_t now = os_now_ns();
  if (by_ns > 0) charge_own_share(usage, &live, (uint64_t)by_ns, now);
  if (by_ns >= 0) return;
  uint64_t wall = own_wall(&live, (uint64_t)-by_ns, now);
  uint64_t level = __atomic_load_n(&usage->lent_at_ns, __ATOMIC_RELAXED);
  while (level > wall && !__atomic_compare_exchange_n(&usage->lent_at_ns, &level, level - wall, false, __ATOMIC_RELAXED,
                                                      __ATOMIC_RELAXED)) {
  }
}

static void set_floor(struct vgpu_device_usage *usage, const struct vgpu_device_live *live, uint64_t gpu_ns,
                      uint64_t now) {
  uint64_t floor = live->low_floor == 0 ? DEFAULT_FLOOR : live->low_floor;
  __atomic_store_n(&usage->floor_at_ns, now + gpu_ns * VGPU_FLOOR_WHOLE / floor, __ATOMIC_RELAXED);
}

uint64_t yield_to_others(uint32_t device, CUstream stream, uint64_t gpu_ns, void (*waiting)(void)) {
  struct vgpu_device_usage *usage = &control.ledger.usage->devices[device];
  struct vgpu_device_live live;
  limits_read(control.limits, device, &live);
  if (!gives_way(&live)) return 0;
  uint64_t began_at = os_now_ns();
  uint64_t now = began_at;
  uint64_t claimed_at = 0;
  while (gives_way(&live)) {
    bool due = is_due(usage, &live, now);
    if (due && !is_low(&live)) break;
    uint32_t found = claimants(device, &live, now);
    if (found != 0) {
      claimed_at = now;
      if (due) break;
    } else if (claimed_at == 0 || now - claimed_at > DRAIN_MOST_NS || !has_work(stream)) {
      break;
    }
    uint64_t from = now;
    waiting();
    os_sleep_until(now + POLL_NS);
    now = os_now_ns();
    charge_claimants(device, found, from, now);
    limits_read(control.limits, device, &live);
  }
  if (is_low(&live))
    set_floor(usage, &live, gpu_ns, now);
  else if (activity_is_on())
    charge_own_share(usage, &live, gpu_ns, now);
  if (now == began_at) return 0;
  usage_count(&usage->preempted_ns, now - began_at);
  usage_count(&usage->throttled_ns, now - began_at);
  return now - began_at;
}

bool yield_is_within_share(uint32_t device) {
  struct vgpu_device_live live;
  limits_read(control.limits, device, &live);
  const struct vgpu_device_usage *usage = &control.ledger.usage->devices[device];
  return limits_share_is_lent(&live) &&
         !law_borrows(__atomic_load_n(&usage->lent_at_ns, __ATOMIC_RELAXED), os_now_ns());
}

static void forget(void) {
  memset(beliefs, 0, sizeof beliefs);
}
AFTER_FORK(forget)
