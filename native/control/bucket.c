#include "bucket.h"
#include "control.h"
#include "flight.h"
#include "os.h"
#include "reported_use.h"
#include "share_law.h"
#include "turn.h"

/* Limits may change while a thread sleeps. */
#define LONGEST_SLEEP_NS 50000000ull
/* In longer waits. */
#define NOTED_WITHIN_NS 10000000ull
/* A grant that the library computed itself expires after this time without new samples: other containers may have
 * become active meanwhile. */
#define SOFT_STALE_NS 500000000ull
/* A detected delay suppresses the agent's grant for at most this long. */
#define BEHIND_STALE_NS 100000000ull

/* Upper bound of a low slice's credit while there are high slices: with more credit it would queue more than one kernel
 * before it yields. */
#define LOW_CREDIT_NS 1000000ull

static struct vgpu_device_usage *usage_of(uint32_t device) {
  return &control.ledger.usage->devices[device];
}

/* When launches of this process were last found to be late; 0: the last samples were on time. */
static uint64_t behind_at_ns[VGPU_MAX_DEVICES];

static bool is_behind(uint32_t device, uint64_t now) {
  uint64_t at = __atomic_load_n(&behind_at_ns[device], __ATOMIC_RELAXED);
  return at != 0 && now - at < BEHIND_STALE_NS;
}

static bool agent_grants(const struct vgpu_device_live *live, uint64_t now) {
  return live->grant_ppm != 0 && limits_steering_is_fresh(live, now);
}

/* The agent notices load of other containers only some steering ticks later. Until then delayed launches would pile up
 * in the GPU's queue, and the container would exceed its share while they drain. */
static uint32_t granted(uint32_t device, const struct vgpu_device_live *live, uint64_t now) {
  if (live->soft_limit <= live->share) return 0;
  if (agent_grants(live, now)) return is_behind(device, now) ? 0 : live->grant_ppm;
  const struct vgpu_device_usage *usage = usage_of(device);
  uint64_t changed = __atomic_load_n(&usage->soft_changed_at_ns, __ATOMIC_RELAXED);
  return now - changed < SOFT_STALE_NS ? __atomic_load_n(&usage->soft_grant_ppm, __ATOMIC_RELAXED) : 0;
}

static uint64_t wall_of(uint32_t device, const struct vgpu_device_live *live, uint64_t gpu_ns, uint64_t now) {
  uint32_t correction = limits_steering_is_fresh(live, now) ? live->correction_ppm : 0;
  return law_wall_ns(gpu_ns, law_effective_ppm(live->share, live->soft_limit, granted(device, live, now)), correction);
}

bool bucket_is_soft(uint32_t device) {
  struct vgpu_device_live live;
  limits_read(control.limits, device, &live);
  return live.soft_limit > live.share;
}

/* How much longer than requested a thread slept. Valid until the container has used the share that it missed. */
static uint64_t held_up_ns[VGPU_MAX_DEVICES];

void bucket_held_up(uint32_t device, uint64_t ns) {
  if (ns > LAW_CREDIT_NS) __atomic_store_n(&held_up_ns[device], ns, __ATOMIC_RELAXED);
}

static uint64_t sleep_for(uint32_t device, uint64_t now, uint64_t wait) {
  uint64_t until = now + (wait < LONGEST_SLEEP_NS ? wait : LONGEST_SLEEP_NS);
  os_sleep_until(until);
  now = os_now_ns();
  if (now > until) bucket_held_up(device, now - until);
  return now;
}

/* A debt is wall time at the share at which it was charged. */
static void follow_share(uint32_t device, uint32_t share, uint64_t now) {
  struct vgpu_device_usage *usage = usage_of(device);
  uint32_t before = __atomic_load_n(&usage->level_share, __ATOMIC_RELAXED);
  if (before == share ||
      !__atomic_compare_exchange_n(&usage->level_share, &before, share, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
    return;
  uint64_t level = __atomic_load_n(&usage->level_at_ns, __ATOMIC_ACQUIRE);
  while (before != 0 && level > now &&
         !__atomic_compare_exchange_n(&usage->level_at_ns, &level, law_at_share(level, now, before, share), false,
                                      __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
  }
}

static uint64_t usable_level(const struct vgpu_device_live *live, uint64_t level, uint64_t now) {
  bool gives_way = live->priority == VGPU_PRIORITY_LOW && live->high_count > 0;
  return gives_way && now > level + LOW_CREDIT_NS ? now - LOW_CREDIT_NS : level;
}

/* Credit for a burst of requests: what the slice left to others, and all of it for a high slice that may use more than
 * its share anyway. */
static uint64_t burst_ns(uint32_t device, const struct vgpu_device_live *live, uint64_t now) {
  if (live->priority == VGPU_PRIORITY_HIGH && live->soft_limit > live->share) return LAW_HELD_UP_MOST_NS;
  uint64_t lent_at = __atomic_load_n(&usage_of(device)->lent_at_ns, __ATOMIC_RELAXED);
  return limits_share_is_lent(live) && now > lent_at ? now - lent_at : 0;
}

/* Moves the level forward from `level`. False: another thread changed the level first; the caller retries. */
static bool charge(uint32_t device, const struct vgpu_device_live *live, uint64_t level, uint64_t now, uint64_t wall) {
  uint64_t held_up = __atomic_load_n(&held_up_ns[device], __ATOMIC_RELAXED);
  uint64_t burst = burst_ns(device, live, now);
  uint64_t after = law_charge(usable_level(live, level, now), now, wall, held_up > burst ? held_up : burst);
  if (!__atomic_compare_exchange_n(&usage_of(device)->level_at_ns, &level, after, false, __ATOMIC_ACQ_REL,
                                   __ATOMIC_RELAXED))
    return false;
  if (held_up != 0) __atomic_store_n(&held_up_ns[device], law_held_up_ns(after, now, held_up), __ATOMIC_RELAXED);
  return true;
}

static void extend_alone(struct vgpu_device_usage *usage, uint64_t gpu_ns, uint64_t now) {
  uint64_t until = __atomic_load_n(&usage->alone_until_ns, __ATOMIC_RELAXED);
  while (!__atomic_compare_exchange_n(&usage->alone_until_ns, &until, (until > now ? until : now) + gpu_ns, false,
                                      __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
  }
}

static void note_charge(uint32_t device, uint64_t gpu_ns, uint64_t wall, uint64_t now) {
  struct vgpu_device_usage *usage = usage_of(device);
  usage_note_charge(&control.ledger.usage->ledger[device][control.ledger.slot], wall);
  usage_count(&usage->charged_ns, gpu_ns);
  reported_use_charged(device, (int64_t)gpu_ns);
  extend_alone(usage, gpu_ns, now);
}

static void adjust(uint32_t device, int64_t by_ns) {
  struct vgpu_device_usage *usage = usage_of(device);
  struct vgpu_device_live live;
  limits_read(control.limits, device, &live);
  uint64_t wall = wall_of(device, &live, (uint64_t)(by_ns < 0 ? -by_ns : by_ns), os_now_ns());
  uint64_t level = __atomic_load_n(&usage->level_at_ns, __ATOMIC_ACQUIRE);
  uint64_t adjusted;
  do {
    adjusted = by_ns > 0 ? level + wall : level > wall ? level - wall : 0;
  } while (
      !__atomic_compare_exchange_n(&usage->level_at_ns, &level, adjusted, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE));
  usage_count(&usage->charged_ns, (uint64_t)by_ns);
}

void bucket_adjust(uint32_t device, int64_t by_ns) {
  if (by_ns == 0) return;
  adjust(device, by_ns);
  reported_use_charged(device, by_ns);
}

/* Shortens a wait if the process was charged more GPU time than the driver reports for it. False: it was not. */
static bool give_back(uint32_t device, const struct vgpu_device_live *live, uint64_t wait, uint64_t now) {
  if (limits_steering_is_fresh(live, now)) {
    reported_use_end();
    return false;
  }
  uint32_t share_ppm = law_effective_ppm(live->share, live->soft_limit, granted(device, live, now));
  uint64_t gpu_ns = reported_use_excess(device, law_gpu_ns(wait, share_ppm), now);
  if (gpu_ns > 0) adjust(device, -(int64_t)gpu_ns);
  return gpu_ns > 0;
}

void bucket_take(uint32_t device, uint64_t gpu_ns, void (*waiting)(void)) {
  struct vgpu_device_usage *usage = usage_of(device);
  uint64_t waited_from = 0;
  uint64_t now = os_now_ns();
  for (;;) {
    struct vgpu_device_live live;
    limits_read(control.limits, device, &live);
    if (!limits_share_is_limited(&live)) break;
    follow_share(device, live.share, now);
    uint64_t level = __atomic_load_n(&usage->level_at_ns, __ATOMIC_ACQUIRE);
    uint64_t wait = law_wait_ns(level, now);
    /* A turn is used as a whole: its tokens are taken ahead. */
    if (wait > 0 && waited_from == 0 && turn_is_taken(device) && wait <= wall_of(device, &live, TURN_NS, now)) wait = 0;
    if (wait > 0) {
      if (waited_from == 0) {
        waited_from = now;
        flight_pause(device);
        turn_end(device, waiting);
        now = os_now_ns();
        continue;
      }
      waiting();
      if (give_back(device, &live, wait, now)) {
        now = os_now_ns();
        continue;
      }
      /* A debt of this size may come from a killed process, whose launches will never run. */
      if (wait > LONGEST_SLEEP_NS) usage_reclaim_rarely(control.ledger.usage, &control.self);
      /* Launches are noted as complete soon after they are. */
      uint64_t runs = wait > NOTED_WITHIN_NS ? flight_incomplete_ns(device, true) : 0;
      if (runs > NOTED_WITHIN_NS) runs = NOTED_WITHIN_NS;
      now = sleep_for(device, now, runs > 0 ? runs + NOTED_WITHIN_NS / 10 : wait);
      continue;
    }
    uint64_t wall = wall_of(device, &live, gpu_ns, now);
    if (charge(device, &live, level, now, wall)) {
      note_charge(device, gpu_ns, wall, now);
      break;
    }
  }
  if (waited_from != 0) {
    usage_count(&usage->waits, 1);
    usage_count(&usage->throttled_ns, now - waited_from);
  }
}

void bucket_resume(uint32_t device, uint64_t gpu_ns) {
  struct vgpu_device_usage *usage = usage_of(device);
  struct vgpu_device_live live;
  uint64_t now = os_now_ns();
  limits_read(control.limits, device, &live);
  uint64_t after = now + wall_of(device, &live, gpu_ns, now);
  uint64_t level = __atomic_load_n(&usage->level_at_ns, __ATOMIC_RELAXED);
  while (level < after &&
         !__atomic_compare_exchange_n(&usage->level_at_ns, &level, after, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
  }
}

uint64_t bucket_alone_until(uint32_t device) {
  return __atomic_load_n(&usage_of(device)->alone_until_ns, __ATOMIC_RELAXED);
}

/* Sums of the samples of this process since the last grant decision. One thread at a time observes. */
static struct {
  uint64_t late_ns;
  uint64_t cost_ns;
  uint64_t launches;
} observed[VGPU_MAX_DEVICES];

void bucket_observe(uint32_t device, uint64_t late_ns, uint64_t cost_ns) {
  struct vgpu_device_usage *usage = usage_of(device);
  uint64_t now = os_now_ns();
  struct vgpu_device_live live;
  limits_read(control.limits, device, &live);
  __atomic_store_n(&behind_at_ns[device], law_is_behind(late_ns, cost_ns) ? now : 0, __ATOMIC_RELAXED);
  if (agent_grants(&live, now)) return;
  uint64_t launches = ++observed[device].launches;
  uint64_t late = (observed[device].late_ns += late_ns) / launches;
  uint64_t part = (observed[device].cost_ns += cost_ns) / launches / LAW_CONTENDED_PART;
  uint64_t changed = __atomic_load_n(&usage->soft_changed_at_ns, __ATOMIC_RELAXED);
  if (now - changed < LAW_SOFT_PERIOD_NS) return;
  if (!__atomic_compare_exchange_n(&usage->soft_changed_at_ns, &changed, now, false, __ATOMIC_RELAXED,
                                   __ATOMIC_RELAXED))
    return;
  uint32_t before = now - changed < SOFT_STALE_NS ? __atomic_load_n(&usage->soft_grant_ppm, __ATOMIC_RELAXED) : 0;
  bool contended = late > (part > LAW_CONTENDED_NS ? part : LAW_CONTENDED_NS);
  uint32_t after = law_soft_grant_ppm(live.share, live.soft_limit, before, contended);
  __atomic_store_n(&usage->soft_grant_ppm, after, __ATOMIC_RELAXED);
  /* Count this delay only once: the model restarts at the time at which the launches really ended. */
  usage_count(&usage->alone_until_ns, late);
  observed[device].late_ns = observed[device].cost_ns = observed[device].launches = 0;
}
