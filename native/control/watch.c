#include "watch.h"
#include "anchor.h"
#include "estimate.h"
#include "fork.h"
#include "gate_state.h"
#include "lock.h"
#include "others.h"
#include "vgpu_abi.h"
#include <string.h>

/*
 * A watch counts launches until it has seen enough of them, and then follows those that come behind until the GPU is
 * done with the counted ones, since they run side by side. How long it counts, and how long it pauses, goes by what was
 * charged and not by the clock: a program that was held up launches much at once, and neither more nor less of that may
 * be counted than of everything else.
 */
#define WATCH_LEAST_NS 5000000ull
#define WATCH_ENOUGH 64u
#define WATCH_MOST_COUNTED (OVERLAP_MOST / 2)
/* By the clock. */
#define WATCH_MOST_NS 100000000ull
#define FOLLOW_MOST_NS 200000000ull
/* Between two: launches go the short way, and the GPU's clock is looked at anew. Long once nothing new was seen for
 * some measurements. */
#define WATCH_PAUSE_NS 4000000ull
#define WATCH_LONG_PAUSE_NS 60000000ull
#define SETTLED_AFTER 10u
#define SETTLED_PART 33u
/* Watches differ by chance in where they begin and end; so many together make one measurement, and more once there
 * is time. */
#define WATCHES_TOGETHER 4u
#define WATCHES_TOGETHER_SETTLED 8u
/* How streams overlap depends on how launches are paced, and that on this: what was seen before the pace changed is
 * soon forgotten. */
#define PART_OVER 4
/* Launches that go by on one stream until it is the only one again. */
#define STREAM_MEMORY 2000u
/* A watch whose launches the GPU does not finish is given up. */
#define WATCH_LOST_NS 5000000000ull
/* GPUs let a process run at least about so long while others wait. */
#define SLICE_NS 1500000u

enum watch_state { WATCH_OFF = 0, WATCH_COUNTING, WATCH_FOLLOWING, WATCH_WAITING };

static struct {
  enum watch_state state;
  uint32_t number;
  uint32_t device;
  uint32_t anchor;
  bool complete;
  uint64_t began_at_ns;
  uint64_t charged_ns; /* for launches on this device, when the watch began or ended */
  uint32_t joined;
  uint32_t left;         /* launches of which nothing is known yet */
  uint32_t counted_left; /* of these, counted ones */
  uint32_t count;
  struct overlap_launch launches[OVERLAP_MOST];
} watch;

static struct {
  struct estimate estimate; /* while others' part is not known */
  struct overlap_sums sums;
  uint32_t watches;
  uint32_t part_ppm;
  uint32_t known_ppm; /* mean of the measurements without others' part */
  uint32_t known;     /* of so many */
  uint32_t settled;   /* measurements in a row that said nothing new */
  bool used;
  CUstream last_stream;
  uint32_t since_switch;
} devices[VGPU_MAX_DEVICES];

static struct lock lock;

static bool times_launches(enum watch_state state) {
  return state == WATCH_COUNTING || state == WATCH_FOLLOWING;
}

bool watch_is_on(void) {
  return times_launches(__atomic_load_n(&watch.state, __ATOMIC_RELAXED));
}

static void set_state(enum watch_state state) {
  if (times_launches(state) != times_launches(watch.state))
    atomic_fetch_add_explicit(&gate.detours, times_launches(state) ? 1 : -1u, memory_order_relaxed);
  __atomic_store_n(&watch.state, state, __ATOMIC_RELAXED);
  anchor_hold(state != WATCH_OFF);
}

static void begin(uint32_t device, uint64_t charged_ns, uint64_t now) {
  watch.number++;
  watch.device = device;
  watch.anchor = 0;
  watch.complete = true;
  watch.began_at_ns = now;
  watch.charged_ns = charged_ns;
  watch.joined = watch.left = watch.counted_left = watch.count = 0;
  set_state(WATCH_COUNTING);
}

/* Running at once saves time and never costs any: more than the whole is what others took. */
static uint32_t part_of(const struct overlap_sums *sums) {
  uint64_t part = sums->ran_ns * VGPU_PPM_WHOLE / sums->charged_ns;
  return part < 10000 ? 10000 : part > VGPU_PPM_WHOLE ? VGPU_PPM_WHOLE : (uint32_t)part;
}

static void learn_known(uint32_t part) {
  __typeof__(&devices[0]) device = &devices[watch.device];
  int64_t off = (int64_t)part - (int64_t)device->known_ppm;
  if (device->known < PART_OVER) device->known++;
  bool nothing_new = (off < 0 ? -off : off) < (int64_t)(device->known_ppm / SETTLED_PART);
  device->settled = nothing_new ? device->settled + 1 : 0;
  device->known_ppm = (uint32_t)((int64_t)device->known_ppm + off / (int64_t)device->known);
}

static bool is_settled(uint32_t device) {
  return devices[device].settled >= SETTLED_AFTER;
}

/* What others had of the time that is left in what was seen. */
static uint32_t hidden_ppm(const struct overlap_sums *seen) {
  return seen->longest_ns < SLICE_NS ? 0 : others_ppm(watch.device);
}

/* What several launches at once take is learned like what one takes: all of what was seen where it is known to be ours,
 * else the lowest. */
static void conclude(uint64_t charged_ns, uint64_t now) {
  __typeof__(&devices[0]) device = &devices[watch.device];
  struct overlap_sums seen = overlap_sums_of(watch.count, watch.launches, watch.complete);
  set_state(WATCH_OFF);
  watch.charged_ns = charged_ns;
  uint32_t hidden = hidden_ppm(&seen);
  if (hidden != OTHERS_UNKNOWN) seen.ran_ns = seen.ran_ns * (VGPU_PPM_WHOLE - hidden) / VGPU_PPM_WHOLE;
  device->sums.charged_ns += seen.charged_ns;
  device->sums.ran_ns += seen.ran_ns;
  if (device->sums.charged_ns == 0) return;
  uint32_t part = part_of(&device->sums);
  if (++device->watches >= (is_settled(watch.device) ? WATCHES_TOGETHER_SETTLED : WATCHES_TOGETHER)) {
    estimate_learn(&device->estimate, part, OTHERS_UNKNOWN, now);
    if (hidden != OTHERS_UNKNOWN) learn_known(part);
    device->sums = (struct overlap_sums){0, 0, 0};
    device->watches = 0;
  }
  uint32_t learned =
      hidden != OTHERS_UNKNOWN ? device->known_ppm : (uint32_t)estimate_value(&device->estimate, OTHERS_UNKNOWN);
  __atomic_store_n(&device->part_ppm, learned != 0 ? learned : part, __ATOMIC_RELAXED);
}

static bool has_counted_enough(uint64_t charged_ns, uint64_t now) {
  return watch.joined >= WATCH_MOST_COUNTED || now - watch.began_at_ns > WATCH_MOST_NS ||
         (charged_ns - watch.charged_ns > WATCH_LEAST_NS && watch.joined >= WATCH_ENOUGH);
}

/* Nothing more is to be timed once nothing counted is under way, or when that takes too long or too much. */
static void follow(uint64_t now) {
  bool done = watch.counted_left == 0;
  if (!done && watch.joined < OVERLAP_MOST && now - watch.began_at_ns < FOLLOW_MOST_NS) return;
  watch.complete = done;
  set_state(WATCH_WAITING);
}

static void go_on(uint32_t device, uint64_t charged_ns, uint64_t now) {
  if (watch.state == WATCH_COUNTING && has_counted_enough(charged_ns, now)) set_state(WATCH_FOLLOWING);
  if (watch.state == WATCH_FOLLOWING) follow(now);
  if (watch.state == WATCH_WAITING && (watch.left == 0 || now - watch.began_at_ns > WATCH_LOST_NS))
    conclude(charged_ns, now);
  uint64_t pause = is_settled(device) ? WATCH_LONG_PAUSE_NS : WATCH_PAUSE_NS;
  if (watch.state == WATCH_OFF && charged_ns - watch.charged_ns > pause) begin(device, charged_ns, now);
}

void watch_saw(uint32_t device, CUstream stream, uint64_t charged_ns, uint64_t now) {
  if (!devices[device].used) {
    devices[device].used = true;
    devices[device].last_stream = stream;
  } else if (stream != devices[device].last_stream) {
    devices[device].last_stream = stream;
    devices[device].since_switch = 1;
  } else if (devices[device].since_switch > 0 && devices[device].since_switch++ > STREAM_MEMORY) {
    devices[device].since_switch = 0;
  }
  if (devices[device].since_switch == 0 || !lock_try(&lock)) return;
  go_on(device, charged_ns, now);
  lock_release(&lock);
}

struct watch_place watch_join(uint32_t device, uint32_t anchor, uint64_t now) {
  struct watch_place place = {0, false};
  if (!watch_is_on() || anchor == 0) return place;
  lock_take(&lock);
  if (times_launches(watch.state) && watch.device == device) {
    if (watch.anchor == 0) watch.anchor = anchor;
    if (watch.anchor == anchor && watch.joined < OVERLAP_MOST) {
      place = (struct watch_place){watch.number, watch.state == WATCH_COUNTING};
      watch.left++;
      watch.counted_left += place.counted;
      watch.joined++;
      if (watch.joined == WATCH_MOST_COUNTED && place.counted) set_state(WATCH_FOLLOWING);
      if (watch.joined == OVERLAP_MOST) follow(now);
    }
  }
  lock_release(&lock);
  return place;
}

static bool take_off(struct watch_place place) {
  if (place.watch != watch.number || watch.left == 0) return false;
  watch.left--;
  if (place.counted && watch.counted_left > 0) watch.counted_left--;
  return true;
}

void watch_add(struct watch_place place, const struct overlap_launch *launch) {
  lock_take(&lock);
  if (take_off(place) && watch.count < OVERLAP_MOST) {
    watch.launches[watch.count] = *launch;
    watch.launches[watch.count++].counted = place.counted;
  }
  lock_release(&lock);
}

void watch_leave_out(struct watch_place place) {
  lock_take(&lock);
  take_off(place);
  lock_release(&lock);
}

uint32_t watch_part_ppm(uint32_t device) {
  if (devices[device].since_switch == 0) return VGPU_PPM_WHOLE;
  uint32_t part = __atomic_load_n(&devices[device].part_ppm, __ATOMIC_RELAXED);
  return part == 0 ? VGPU_PPM_WHOLE : part;
}

static void forget(void) {
  memset(&watch, 0, sizeof watch);
  memset(devices, 0, sizeof devices);
  lock.taken = 0;
}
AFTER_FORK(forget)
