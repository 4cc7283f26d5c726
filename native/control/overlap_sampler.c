#include "overlap_sampler.h"
#include "anchor.h"
#include "estimate.h"
#include "fork.h"
#include "gate_state.h"
#include "lock.h"
#include "others.h"
#include "vgpu_abi.h"
#include <string.h>

/*
 * The timing window. While it counts, launches are timed until there are enough of them. Then later launches are timed
 * as well, because they run concurrently with the counted ones, until the GPU has finished all counted launches. The
 * length of a window and the pause after it are measured in charged GPU time instead of wall time: a program that was
 * throttled submits many launches at once, and these must not weigh more or less than others.
 */
#define WINDOW_LEAST_NS 5000000ull
#define WINDOW_ENOUGH 64u
#define WINDOW_MOST_COUNTED (OVERLAP_MOST / 2)
/* Wall time. */
#define WINDOW_MOST_NS 100000000ull
#define TRAIL_MOST_NS 200000000ull
/* GPU time charged between two windows. Launches take the fast path meanwhile, and the anchor is renewed. The long
 * pause applies once several measurements in a row agree. */
#define WINDOW_PAUSE_NS 4000000ull
#define WINDOW_LONG_PAUSE_NS 60000000ull
#define SETTLED_AFTER 10u
#define SETTLED_PART 33u
/* Windows differ at random in where they begin and end, so this many windows make one measurement. Once measurements
 * agree there is time for more of them. */
#define WINDOWS_PER_MEASUREMENT 4u
#define WINDOWS_PER_MEASUREMENT_SETTLED 8u
/* The overlap depends on how launches are paced, and the pacing depends on this factor. Old measurements therefore lose
 * their weight quickly after the pacing changes. */
#define PART_OVER 4
/* Launches in a row on one stream after which the other streams count as unused. */
#define STREAM_MEMORY 2000u
/* A window is discarded if the GPU does not finish its launches within this time. */
#define WINDOW_LOST_NS 5000000000ull
/* Minimum time slice of GPUs while other processes wait. */
#define SLICE_NS 1500000u

enum window_state { WINDOW_OFF = 0, WINDOW_COUNTING, WINDOW_TRAILING, WINDOW_WAITING };

static struct {
  enum window_state state;
  uint32_t number;
  uint32_t device;
  uint32_t anchor;
  bool complete;
  uint64_t began_at_ns;
  uint64_t charged_ns; /* charged for launches on this device when the window opened or closed */
  uint32_t joined;
  uint32_t left;         /* timed launches that are neither added nor discarded yet */
  uint32_t counted_left; /* counted launches among them */
  uint32_t count;
  struct overlap_launch launches[OVERLAP_MOST];
} window;

static struct {
  struct estimate estimate; /* used while the share of other containers is unknown */
  struct overlap_sums sums;
  uint32_t windows;
  uint32_t factor_ppm;
  uint32_t known_ppm; /* mean of the measurements, with the time of other containers removed */
  uint32_t known;     /* number of measurements in the mean */
  uint32_t settled;   /* consecutive measurements that agreed with the mean */
  bool used;
  CUstream last_stream;
  uint32_t since_switch;
} devices[VGPU_MAX_DEVICES];

static struct lock lock;

static bool times_launches(enum window_state state) {
  return state == WINDOW_COUNTING || state == WINDOW_TRAILING;
}

bool overlap_sampler_is_on(void) {
  return times_launches(__atomic_load_n(&window.state, __ATOMIC_RELAXED));
}

static void set_state(enum window_state state) {
  if (times_launches(state) != times_launches(window.state))
    atomic_fetch_add_explicit(&gate.slow_path_reasons, times_launches(state) ? 1 : -1u, memory_order_relaxed);
  __atomic_store_n(&window.state, state, __ATOMIC_RELAXED);
  anchor_hold(state != WINDOW_OFF);
}

static void open_window(uint32_t device, uint64_t charged_ns, uint64_t now) {
  window.number++;
  window.device = device;
  window.anchor = 0;
  window.complete = true;
  window.began_at_ns = now;
  window.charged_ns = charged_ns;
  window.joined = window.left = window.counted_left = window.count = 0;
  set_state(WINDOW_COUNTING);
}

/* Concurrency never costs time, so a factor above 100 percent includes time of other containers. It is clamped. */
static uint32_t factor_of(const struct overlap_sums *sums) {
  uint64_t part = sums->ran_ns * VGPU_PPM_WHOLE / sums->charged_ns;
  return part < 10000 ? 10000 : part > VGPU_PPM_WHOLE ? VGPU_PPM_WHOLE : (uint32_t)part;
}

static void learn_known(uint32_t part) {
  __typeof__(&devices[0]) device = &devices[window.device];
  int64_t off = (int64_t)part - (int64_t)device->known_ppm;
  if (device->known < PART_OVER) device->known++;
  bool agrees = (off < 0 ? -off : off) < (int64_t)(device->known_ppm / SETTLED_PART);
  device->settled = agrees ? device->settled + 1 : 0;
  device->known_ppm = (uint32_t)((int64_t)device->known_ppm + off / (int64_t)device->known);
}

static bool is_settled(uint32_t device) {
  return devices[device].settled >= SETTLED_AFTER;
}

/* The part of the measured time that other containers used without being detected in the overlap, in ppm. */
static uint32_t hidden_ppm(const struct overlap_sums *seen) {
  return seen->longest_ns < SLICE_NS ? 0 : others_ppm(window.device);
}

/* The factor is learned like the cost of a launch: as the mean of all measurements while the share of other containers
 * is known, otherwise from the lowest ones. */
static void conclude(uint64_t charged_ns, uint64_t now) {
  __typeof__(&devices[0]) device = &devices[window.device];
  struct overlap_sums seen = overlap_sums_of(window.count, window.launches, window.complete);
  set_state(WINDOW_OFF);
  window.charged_ns = charged_ns;
  uint32_t hidden = hidden_ppm(&seen);
  if (hidden != OTHERS_UNKNOWN) seen.ran_ns = seen.ran_ns * (VGPU_PPM_WHOLE - hidden) / VGPU_PPM_WHOLE;
  device->sums.charged_ns += seen.charged_ns;
  device->sums.ran_ns += seen.ran_ns;
  if (device->sums.charged_ns == 0) return;
  uint32_t part = factor_of(&device->sums);
  if (++device->windows >= (is_settled(window.device) ? WINDOWS_PER_MEASUREMENT_SETTLED : WINDOWS_PER_MEASUREMENT)) {
    estimate_learn(&device->estimate, part, OTHERS_UNKNOWN, now);
    if (hidden != OTHERS_UNKNOWN) learn_known(part);
    device->sums = (struct overlap_sums){0, 0, 0};
    device->windows = 0;
  }
  uint32_t learned =
      hidden != OTHERS_UNKNOWN ? device->known_ppm : (uint32_t)estimate_value(&device->estimate, OTHERS_UNKNOWN);
  __atomic_store_n(&device->factor_ppm, learned != 0 ? learned : part, __ATOMIC_RELAXED);
}

static bool has_counted_enough(uint64_t charged_ns, uint64_t now) {
  return window.joined >= WINDOW_MOST_COUNTED || now - window.began_at_ns > WINDOW_MOST_NS ||
         (charged_ns - window.charged_ns > WINDOW_LEAST_NS && window.joined >= WINDOW_ENOUGH);
}

/* Stops timing once all counted launches have ended, or when that takes too long or too many launches. */
static void stop_timing_if_done(uint64_t now) {
  bool done = window.counted_left == 0;
  if (!done && window.joined < OVERLAP_MOST && now - window.began_at_ns < TRAIL_MOST_NS) return;
  window.complete = done;
  set_state(WINDOW_WAITING);
}

static void advance_window(uint32_t device, uint64_t charged_ns, uint64_t now) {
  if (window.state == WINDOW_COUNTING && has_counted_enough(charged_ns, now)) set_state(WINDOW_TRAILING);
  if (window.state == WINDOW_TRAILING) stop_timing_if_done(now);
  if (window.state == WINDOW_WAITING && (window.left == 0 || now - window.began_at_ns > WINDOW_LOST_NS))
    conclude(charged_ns, now);
  uint64_t pause = is_settled(device) ? WINDOW_LONG_PAUSE_NS : WINDOW_PAUSE_NS;
  if (window.state == WINDOW_OFF && charged_ns - window.charged_ns > pause) open_window(device, charged_ns, now);
}

void overlap_sampler_note_launch(uint32_t device, CUstream stream, uint64_t charged_ns, uint64_t now) {
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
  advance_window(device, charged_ns, now);
  lock_release(&lock);
}

struct overlap_ticket overlap_sampler_join(uint32_t device, uint32_t anchor, uint64_t now) {
  struct overlap_ticket ticket = {0, false};
  if (!overlap_sampler_is_on() || anchor == 0) return ticket;
  lock_take(&lock);
  if (times_launches(window.state) && window.device == device) {
    if (window.anchor == 0) window.anchor = anchor;
    if (window.anchor == anchor && window.joined < OVERLAP_MOST) {
      ticket = (struct overlap_ticket){window.number, window.state == WINDOW_COUNTING};
      window.left++;
      window.counted_left += ticket.counted;
      window.joined++;
      if (window.joined == WINDOW_MOST_COUNTED && ticket.counted) set_state(WINDOW_TRAILING);
      if (window.joined == OVERLAP_MOST) stop_timing_if_done(now);
    }
  }
  lock_release(&lock);
  return ticket;
}

static bool take_from_window(struct overlap_ticket ticket) {
  if (ticket.window != window.number || window.left == 0) return false;
  window.left--;
  if (ticket.counted && window.counted_left > 0) window.counted_left--;
  return true;
}

void overlap_sampler_add(struct overlap_ticket ticket, const struct overlap_launch *launch) {
  lock_take(&lock);
  if (take_from_window(ticket) && window.count < OVERLAP_MOST) {
    window.launches[window.count] = *launch;
    window.launches[window.count++].counted = ticket.counted;
  }
  lock_release(&lock);
}

void overlap_sampler_discard(struct overlap_ticket ticket) {
  lock_take(&lock);
  take_from_window(ticket);
  lock_release(&lock);
}

uint32_t overlap_sampler_factor_ppm(uint32_t device) {
  if (devices[device].since_switch == 0) return VGPU_PPM_WHOLE;
  uint32_t part = __atomic_load_n(&devices[device].factor_ppm, __ATOMIC_RELAXED);
  return part == 0 ? VGPU_PPM_WHOLE : part;
}

static void reset(void) {
  memset(&window, 0, sizeof window);
  memset(devices, 0, sizeof devices);
  lock.taken = 0;
}
AFTER_FORK(reset)
