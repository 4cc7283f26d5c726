#include "turn.h"
#include "capture.h"
#include "control.h"
#include "devices.h"
#include "driver.h"
#include "fork.h"
#include "lock.h"
#include "os.h"
#include "own_activity.h"
#include "pauses.h"
#include "peers.h"
#include "share_law.h"
#include <string.h>

/* A slice keeps the turn for this long after the predicted end of its launches, which does not include the switch to
 * it. */
#define LINGER_NS 300000ull
/* A wish that was not renewed, and a busy slice that launched nothing, count for this long. */
#define WISH_NS 20000000ull
#define BUSY_NS 200000000ull
/* Launches of unknown cost hold the turn for at most this long, and so does a turn whose launches do not end: they may
 * wait for this thread. */
#define UNKNOWN_NS 100000000ull
/* What a slice that paused may be behind the others. */
#define BEHIND_NS 50000000ull
#define FREE_MOST_NS 5000000ull
#define POLL_NS 20000ull
#define LONG_POLL_NS 500000ull
#define STREAMS 16u

static struct {
  struct lock lock;
  struct vgpu_turn *turn; /* of this slice; NULL: it takes no turns */
  uint64_t free_from_ns;  /* since when no slice had the turn, as this one saw it */
  bool apart;             /* the program pauses: it launches without turns */
  uint32_t peers;
  uint32_t share_ppm;
  bool unknown;          /* the turn is held for launches of unknown cost */
  uint64_t contended_ns; /* when another slice was last seen to take turns */
  uint64_t disturbed_ns; /* when another slice was last seen to launch without turns */
  uint64_t charged_ns;   /* of launches since `began` */
  bool timed;            /* `began` was recorded in this turn */
  CUcontext context;     /* of the events; NULL: there are none */
  CUevent began, ended;
  uint32_t streams_count; /* with launches of this turn */
  CUstream streams[STREAMS];
} devices[VGPU_MAX_DEVICES];

static uint64_t hash(const char *text, size_t room) {
  uint64_t value = 0xcbf29ce484222325ull;
  for (size_t i = 0; i < room && text[i] != 0; i++)
    value = (value ^ (unsigned char)text[i]) * 0x100000001b3ull;
  return value | 1;
}

static uint64_t load(const uint64_t *word) {
  return __atomic_load_n(word, __ATOMIC_ACQUIRE);
}

static void store(uint64_t *word, uint64_t value) {
  __atomic_store_n(word, value, __ATOMIC_SEQ_CST);
}

void turn_refresh(void) {
  struct vgpu_activity *file = own_activity();
  for (uint32_t i = 0; i < control.limits->header.device_count; i++) {
    struct vgpu_device_live live;
    limits_read(control.limits, i, &live);
    bool takes = file != NULL && live.high_count > 0 && live.priority == VGPU_PRIORITY_NORMAL &&
                 limits_share_is_limited(&live) && live.soft_limit <= live.share;
    devices[i].share_ppm = law_effective_ppm(live.share, 0, 0);
    devices[i].peers = live.high_count < VGPU_MAX_HIGH ? live.high_count : VGPU_MAX_HIGH;
    struct vgpu_turn *turn = takes ? &file->turns[i] : NULL;
    if (turn != NULL && load(&turn->gpu) == 0) {
      store(&turn->slice, hash(control.limits->header.allocation, sizeof control.limits->header.allocation));
      store(&turn->gpu, hash(control.limits->devices[i].uuid, sizeof control.limits->devices[i].uuid));
    }
    __atomic_store_n(&devices[i].turn, turn, __ATOMIC_RELEASE);
  }
}

/* What another slice says is believed for a part of the time only, which the agent derives from its share: it may claim
 * the turn without end. `level_at_ns` is a bucket of the time for which this process waited for it. */
#define BELIEF_BURST_NS 500000000ull
#define BELIEF_PAUSE_NS 20000000ull
static struct belief {
  uint64_t level_at_ns;
  bool spent;
} beliefs[VGPU_MAX_DEVICES][VGPU_MAX_HIGH];

static bool is_believed(uint32_t device, uint32_t number, uint64_t now) {
  struct belief *belief = &beliefs[device][number];
  belief->spent = load(&belief->level_at_ns) + (belief->spent ? BELIEF_PAUSE_NS : 0) > now;
  return !belief->spent;
}

static void charge_belief(uint32_t device, uint32_t number, uint64_t from, uint64_t now) {
  uint32_t part = __atomic_load_n(&control.limits->devices[device].high_believed[number], __ATOMIC_RELAXED);
  uint64_t level = load(&beliefs[device][number].level_at_ns);
  if (level + BELIEF_BURST_NS < from) level = from - BELIEF_BURST_NS;
  if (part < 100 && now > from) store(&beliefs[device][number].level_at_ns, level + (now - from) * 100 / (part + 1));
}

/* What the other slices on the GPU say. */
struct view {
  bool any;            /* another slice takes turns */
  bool behind;         /* one that waits was charged less */
  uint64_t held_until; /* end of another slice's turn; 0: no other has the turn */
  uint32_t holder;
  uint32_t waits_for;   /* the slice that has it */
  uint64_t least_level; /* of those that take turns */
};

static bool goes_before(const struct vgpu_turn *a, uint64_t level, uint64_t slice) {
  return a->level_ns != level ? a->level_ns < level : a->slice < slice;
}

static struct view look(uint32_t device, uint64_t now) {
  const struct vgpu_turn *own = devices[device].turn;
  struct view view = {.least_level = UINT64_MAX};
  for (uint32_t i = 0; i < devices[device].peers; i++) {
    struct vgpu_turn turns[VGPU_MAX_DEVICES];
    if (!is_believed(device, i, now)) continue;
    if (!peers_read(device, i, turns, sizeof turns, offsetof(struct vgpu_activity, turns))) continue;
    for (uint32_t at = 0; at < VGPU_MAX_DEVICES && turns[at].gpu != 0; at++) {
      const struct vgpu_turn *turn = &turns[at];
      if (turn->gpu != load(&own->gpu) || turn->busy_until_ns <= now) continue;
      if (turn->pauses) {
        devices[device].disturbed_ns = now;
        continue;
      }
      view.any = true;
      if (turn->level_ns < view.least_level) view.least_level = turn->level_ns;
      if (turn->holds_until_ns > now && turn->holds_until_ns - now <= 2 * UNKNOWN_NS) {
        view.held_until = turn->holds_until_ns;
        view.holder = i * VGPU_MAX_DEVICES + at;
        view.waits_for = i;
      }
      if (turn->wishes_until_ns > now && goes_before(turn, load(&own->level_ns), own->slice)) view.behind = true;
    }
  }
  if (view.any) devices[device].contended_ns = now;
  return view;
}

bool turn_is_taken(uint32_t device) {
  if (__atomic_load_n(&devices[device].turn, __ATOMIC_ACQUIRE) == NULL || devices[device].apart) return false;
  return os_now_ns() - devices[device].contended_ns < BUSY_NS;
}

bool turn_is_undisturbed(uint32_t device) {
  return turn_is_taken(device) && os_now_ns() - devices[device].disturbed_ns > BUSY_NS;
}

/* ---- the turn ---- */

static void note_stream(uint32_t device, CUstream stream) {
  for (uint32_t i = 0; i < devices[device].streams_count; i++)
    if (devices[device].streams[i] == stream) return;
  if (devices[device].streams_count < STREAMS) devices[device].streams[devices[device].streams_count++] = stream;
}

static bool has_work(uint32_t device) {
  if (captures != 0) return false;
  for (uint32_t i = 0; i < devices[device].streams_count; i++)
    if (driver.cuStreamQuery(devices[device].streams[i]) == CUDA_ERROR_NOT_READY) return true;
  return false;
}

/* ---- what a turn took ---- */

/* A turn whose charge differs by less is not corrected: the program itself leaves small gaps. */
#define SETTLED_PART 20u
#define SETTLED_LEAST_NS 200000ull

static bool is_alone(void) {
  const struct vgpu_usage *usage = control.ledger.usage;
  uint32_t processes = 0;
  for (uint32_t i = 0; i < usage_slot_high(usage); i++)
    processes += __atomic_load_n(&usage->slots[i].owner, __ATOMIC_RELAXED) != 0;
  return processes == 1;
}

static bool have_events(uint32_t device, CUstream stream) {
  CUcontext current = NULL, context = devices_stream_context(stream);
  if (driver.cuCtxGetCurrent(&current) != CUDA_SUCCESS || current == NULL || current != context) return false;
  if (devices[device].context == context) return true;
  if (devices[device].context != NULL) return false;
  if (driver.cuEventCreate(&devices[device].began, CU_EVENT_DEFAULT) != CUDA_SUCCESS) return false;
  if (driver.cuEventCreate(&devices[device].ended, CU_EVENT_DEFAULT) != CUDA_SUCCESS) {
    driver.cuEventDestroy_v2(devices[device].began);
    return false;
  }
  devices[device].context = context;
  return true;
}

static void begin_timing(uint32_t device, CUstream stream) {
  devices[device].charged_ns = 0;
  devices[device].timed = captures == 0 && have_events(device, stream) &&
                          driver.cuEventRecord(devices[device].began, stream) == CUDA_SUCCESS;
}

static void end_timing(uint32_t device) {
  if (!devices[device].timed) return;
  devices[device].timed = captures == 0 && devices[device].streams_count == 1 &&
                          driver.cuEventRecord(devices[device].ended, devices[device].streams[0]) == CUDA_SUCCESS;
}

/* What the launches of a turn took beyond their charge; negative: what they did not take. Nothing else ran
 * meanwhile, so the time between two events is exact. */
static int64_t settle(uint32_t device) {
  float took_ms;
  if (!devices[device].timed || !is_alone() || !turn_is_undisturbed(device)) return 0;
  devices[device].timed = false;
  if (driver.cuEventElapsedTime(&took_ms, devices[device].began, devices[device].ended) != CUDA_SUCCESS) return 0;
  int64_t charged_ns = (int64_t)devices[device].charged_ns, more = (int64_t)((double)took_ms * 1e6) - charged_ns;
  int64_t least =
      charged_ns / SETTLED_PART > (int64_t)SETTLED_LEAST_NS ? charged_ns / SETTLED_PART : (int64_t)SETTLED_LEAST_NS;
  if (took_ms <= 0 || (more < least && more > -least)) return 0;
  turn_adjust(device, more);
  return more;
}

void turn_drop_context(CUcontext context) {
  for (uint32_t i = 0; i < VGPU_MAX_DEVICES; i++) {
    if (devices[i].context != context) continue;
    driver.cuEventDestroy_v2(devices[i].began);
    driver.cuEventDestroy_v2(devices[i].ended);
    devices[i].context = NULL;
    devices[i].timed = false;
  }
}

/* Waits until the launches of this turn are complete, and keeps the turn until then. Returns what they took beyond
 * their charge. */
static int64_t drain(uint32_t device, void (*waiting)(void)) {
  struct vgpu_turn *turn = devices[device].turn;
  uint64_t now = os_now_ns(), end = load(&turn->holds_until_ns) - LINGER_NS, most = now + UNKNOWN_NS;
  end_timing(device);
  if (devices[device].unknown) end = now;
  if (end > now) most = end + UNKNOWN_NS;
  while (has_work(device) && now < most) {
    uint64_t left = end > now ? end - now : 0;
    if (left == 0) store(&turn->holds_until_ns, now + 2 * LINGER_NS);
    waiting();
    now = os_now_ns();
    os_sleep_until(now + (left > LONG_POLL_NS ? LONG_POLL_NS : left > 2 * POLL_NS ? left - POLL_NS : POLL_NS));
    now = os_now_ns();
  }
  return now < most ? settle(device) : 0;
}

static void release(uint32_t device) {
  struct vgpu_turn *turn = devices[device].turn;
  devices[device].streams_count = 0;
  devices[device].free_from_ns = os_now_ns();
  store(&turn->holds_until_ns, 0);
  store(&turn->used_ns, 0);
  __atomic_fetch_add(&turn->ended, 1, __ATOMIC_SEQ_CST);
  os_wake_word(&turn->ended);
}

static bool holds(const struct vgpu_turn *turn, uint64_t now) {
  return load(&turn->holds_until_ns) > now;
}

int64_t turn_end(uint32_t device, void (*waiting)(void)) {
  struct vgpu_turn *turn = __atomic_load_n(&devices[device].turn, __ATOMIC_ACQUIRE);
  if (turn == NULL || !holds(turn, os_now_ns())) return 0;
  int64_t more = drain(device, waiting);
  release(device);
  return more;
}

/* Adds launches to the turn. */
static void extend(uint32_t device, CUstream stream, uint64_t gpu_ns, bool unknown, uint64_t now) {
  struct vgpu_turn *turn = devices[device].turn;
  uint64_t until = load(&turn->holds_until_ns);
  until = until > now + LINGER_NS && !devices[device].unknown ? until - LINGER_NS : now;
  devices[device].unknown = unknown;
  store(&turn->holds_until_ns, (unknown ? now + UNKNOWN_NS : until + gpu_ns) + LINGER_NS);
  store(&turn->wishes_until_ns, 0);
  store(&turn->busy_until_ns, now + BUSY_NS);
  __atomic_fetch_add(&turn->used_ns, gpu_ns, __ATOMIC_RELAXED);
  __atomic_fetch_add(&turn->level_ns, law_wall_ns(gpu_ns, devices[device].share_ppm, 0), __ATOMIC_RELAXED);
  if (load(&turn->used_ns) == gpu_ns && devices[device].streams_count == 0) begin_timing(device, stream);
  devices[device].charged_ns += gpu_ns;
  note_stream(device, stream);
}

static void wait_for_holder(uint32_t device, const struct view *view, uint64_t now) {
  uint64_t until = view->held_until > now ? view->held_until : now + POLL_NS;
  size_t offset = offsetof(struct vgpu_activity, turns) + view->holder % VGPU_MAX_DEVICES * sizeof(struct vgpu_turn) +
                  offsetof(struct vgpu_turn, ended);
  uint32_t number = view->holder / VGPU_MAX_DEVICES, ended;
  const uint32_t *word = view->held_until == 0 ? NULL : peers_word(device, number, offset);
  if (view->behind || word == NULL || !peers_read(device, number, &ended, sizeof ended, offset)) {
    os_sleep_until(until < now + LONG_POLL_NS ? until + POLL_NS : now + LONG_POLL_NS);
    return;
  }
  struct vgpu_turn still;
  if (!peers_read(device, number, &still, sizeof still, offset - offsetof(struct vgpu_turn, ended)) ||
      still.holds_until_ns <= now)
    return;
  os_wait_word(word, ended, until < now + WISH_NS / 2 ? until : now + WISH_NS / 2);
}

/* A slice that comes back goes on from where the others are. */
static void catch_up(struct vgpu_turn *turn, const struct view *view) {
  if (!view->any || view->least_level < BEHIND_NS) return;
  uint64_t level = load(&turn->level_ns), least = view->least_level - BEHIND_NS;
  if (level < least)
    __atomic_compare_exchange_n(&turn->level_ns, &level, least, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
}

/* Whether the slice has the turn now. */
static bool seize(uint32_t device, uint64_t now) {
  struct vgpu_turn *turn = devices[device].turn;
  struct view view = look(device, now);
  catch_up(turn, &view);
  /* A slice that waits for the turn takes it soon: otherwise its wish is not believed. */
  if (view.held_until != 0 || !view.behind) devices[device].free_from_ns = now;
  if (view.held_until != 0 || (view.behind && now < devices[device].free_from_ns + FREE_MOST_NS)) {
    store(&turn->wishes_until_ns, now + WISH_NS);
    wait_for_holder(device, &view, now);
    if (view.held_until != 0) charge_belief(device, view.waits_for, now, os_now_ns());
    return false;
  }
  store(&turn->holds_until_ns, now + LINGER_NS);
  store(&turn->used_ns, 0);
  /* Two slices may have seen no holder at the same time: one of them sees the other now. */
  view = look(device, now);
  if (view.held_until != 0 && view.behind) {
    store(&turn->holds_until_ns, 0);
    return false;
  }
  return true;
}

int64_t turn_take(uint32_t device, CUstream stream, uint64_t gpu_ns, bool unknown, void (*waiting)(void)) {
  struct vgpu_turn *turn = __atomic_load_n(&devices[device].turn, __ATOMIC_ACQUIRE);
  if (turn == NULL) return 0;
  uint64_t now = os_now_ns();
  devices[device].apart = pauses_are_long(gpu_ns);
  __atomic_store_n(&turn->pauses, devices[device].apart, __ATOMIC_RELAXED);
  store(&turn->busy_until_ns, now + BUSY_NS);
  if (devices[device].apart) {
    if (load(&turn->holds_until_ns) != 0) release(device);
    return 0;
  }
  int64_t more = 0;
  for (;;) {
    bool mine = holds(turn, now);
    uint64_t used = load(&turn->used_ns);
    if (mine && used > 0 && used + gpu_ns / 2 > TURN_NS) {
      struct view view = look(device, now);
      uint64_t until = load(&turn->holds_until_ns);
      if (view.any && view.behind) {
        more = drain(device, waiting);
        release(device);
        mine = false;
      } else if (until > now + TURN_NS / 2) {
        waiting();
        os_sleep_until(until - TURN_NS / 2);
        now = os_now_ns();
        continue;
      } else {
        store(&turn->used_ns, 0);
      }
    }
    if (mine || seize(device, now)) break;
    waiting();
    now = os_now_ns();
    store(&turn->busy_until_ns, now + BUSY_NS);
  }
  extend(device, stream, gpu_ns, unknown, os_now_ns());
  return more;
}

void turn_adjust(uint32_t device, int64_t by_ns) {
  struct vgpu_turn *turn = __atomic_load_n(&devices[device].turn, __ATOMIC_ACQUIRE);
  if (turn == NULL) return;
  uint64_t wall = law_wall_ns((uint64_t)(by_ns < 0 ? -by_ns : by_ns), devices[device].share_ppm, 0);
  if (by_ns < 0 && wall > load(&turn->level_ns)) wall = load(&turn->level_ns);
  __atomic_fetch_add(&turn->level_ns, by_ns < 0 ? -wall : wall, __ATOMIC_RELAXED);
}

/* The turn belongs to the slice, the launches to the parent. */
static void reset(void) {
  for (uint32_t i = 0; i < VGPU_MAX_DEVICES; i++)
    devices[i].streams_count = 0, devices[i].context = NULL, devices[i].timed = false;
}
AFTER_FORK(reset)
