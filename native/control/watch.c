#include "watch.h"
#include "anchor.h"
#include "estimate.h"
#include "gate.h"
#include "lock.h"
#include "others.h"
#include "overlap.h"
#include <string.h>

/* A watch lasts until it has seen enough. */
#define WATCH_LEAST_NS 10000000ull
#define WATCH_MOST_NS 100000000ull
#define WATCH_ENOUGH 64u
/* Between two: launches go the short way, and the GPU's clock is looked at anew. Long once nothing new was seen for
 * some measurements. */
#define WATCH_PAUSE_NS 8000000ull
#define WATCH_LONG_PAUSE_NS 120000000ull
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

enum watch_state { WATCH_OFF = 0, WATCH_ON, WATCH_WAITING };

static struct {
  enum watch_state state;
  uint32_t number;
  uint32_t device;
  uint32_t anchor;
  uint64_t began_at_ns;
  uint64_t ended_at_ns;
  uint32_t joined;
  uint32_t left; /* launches of which nothing is known yet */
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

bool watch_is_on(void) {
  return __atomic_load_n(&watch.state, __ATOMIC_RELAXED) == WATCH_ON;
}

static void set_state(enum watch_state state) {
  if ((state == WATCH_ON) != (watch.state == WATCH_ON))
    __atomic_fetch_add(&gate.detours, state == WATCH_ON ? 1 : -1u, __ATOMIC_RELAXED);
  __atomic_store_n(&watch.state, state, __ATOMIC_RELAXED);
  anchor_hold(state != WATCH_OFF);
}

static void begin(uint32_t device, uint64_t now) {
  watch.number++;
  watch.device = device;
  watch.anchor = 0;
  watch.began_at_ns = now;
  watch.joined = watch.left = watch.count = 0;
  set_state(WATCH_ON);
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
static void conclude(uint64_t now) {
  __typeof__(&devices[0]) device = &devices[watch.device];
  struct overlap_sums seen = overlap_sums_of(watch.count, watch.launches);
  set_state(WATCH_OFF);
  watch.ended_at_ns = now;
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

static bool has_seen_enough(uint64_t now) {
  uint64_t lasted = now - watch.began_at_ns;
  return watch.joined == OVERLAP_MOST || lasted > WATCH_MOST_NS ||
         (lasted > WATCH_LEAST_NS && watch.joined >= WATCH_ENOUGH);
}

void watch_saw(uint32_t device, CUstream stream, uint64_t now) {
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
  if (watch.state == WATCH_ON && has_seen_enough(now)) set_state(WATCH_WAITING);
  if (watch.state == WATCH_WAITING && (watch.left == 0 || now - watch.began_at_ns > WATCH_LOST_NS)) conclude(now);
  if (watch.state == WATCH_OFF && now - watch.ended_at_ns > (is_settled(device) ? WATCH_LONG_PAUSE_NS : WATCH_PAUSE_NS))
    begin(device, now);
  lock_release(&lock);
}

uint32_t watch_join(uint32_t device, uint32_t anchor, uint64_t now) {
  uint32_t number = 0;
  if (!watch_is_on() || anchor == 0) return 0;
  lock_take(&lock);
  if (watch.state == WATCH_ON && watch.device == device) {
    if (watch.anchor == 0) watch.anchor = anchor;
    if (watch.anchor == anchor) {
      number = watch.number;
      watch.left++;
      watch.joined++;
      if (has_seen_enough(now)) set_state(WATCH_WAITING);
    }
  }
  lock_release(&lock);
  return number;
}

void watch_add(uint32_t number, uint64_t stream, uint64_t cost_ns, int64_t start_ns, int64_t end_ns) {
  lock_take(&lock);
  if (number == watch.number && watch.left > 0 && watch.count < OVERLAP_MOST) {
    watch.launches[watch.count++] = (struct overlap_launch){start_ns, end_ns, cost_ns, stream};
    watch.left--;
  }
  lock_release(&lock);
}

void watch_leave_out(uint32_t number) {
  lock_take(&lock);
  if (number == watch.number && watch.left > 0) watch.left--;
  lock_release(&lock);
}

uint32_t watch_part_ppm(uint32_t device) {
  if (devices[device].since_switch == 0) return VGPU_PPM_WHOLE;
  uint32_t part = __atomic_load_n(&devices[device].part_ppm, __ATOMIC_RELAXED);
  return part == 0 ? VGPU_PPM_WHOLE : part;
}

void watch_after_fork(void) {
  memset(&watch, 0, sizeof watch);
  memset(devices, 0, sizeof devices);
  lock.taken = 0;
}
