#include "turn.h"
#include "control.h"
#include "flight.h"
#include "fork.h"
#include "lock.h"
#include "os.h"
#include "own_activity.h"
#include "patience.h"
#include "pauses.h"
#include "peers.h"
#include "share_law.h"

/* A slice keeps the turn for this long after the predicted end of its launches, which does not include the switch to
 * it. */
#define LINGER_NS 300000ull
/* A wait for the turn that was not renewed, and a busy slice that launched nothing, count for this long. */
#define WAIT_NS 20000000ull
#define BUSY_NS 200000000ull
/* Launches of unknown cost hold the turn for at most this long. */
#define UNKNOWN_NS 100000000ull
/* A turn whose launches do not end is kept for so long: they may wait for this thread. */
#define OVERRUN_NS 200000000ull
/* What a slice that paused may be behind the others. */
#define BEHIND_NS 50000000ull
#define FREE_MOST_NS 5000000ull
#define POLL_NS 20000ull
#define LONG_POLL_NS 500000ull

static struct {
  struct lock lock;       /* one thread at a time takes or ends the turn; the others wait for it */
  struct vgpu_turn *turn; /* of this slice; NULL: it never took any */
  bool takes;             /* the slice takes turns now */
  uint64_t free_from_ns;  /* since when no slice had the turn, as this one saw it */
  bool apart;             /* it launches without turns: the program pauses, or has several processes */
  bool impatient;         /* it does not wait for others */
  bool overruns;          /* its launches outlasted its turn */
  uint32_t peers;
  uint32_t share_ppm;
  uint64_t counted_ns;   /* until when its turn was counted as time that it wants; 0: it has none */
  bool unknown;          /* the turn is held for launches of unknown cost */
  uint64_t looked_ns;    /* when it last looked at the others */
  uint64_t contended_ns; /* when another slice was last seen to take turns */
  uint64_t disturbed_ns; /* when another slice was last seen to launch without turns */
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
    if (takes && load(&turn->gpu) == 0) {
      store(&turn->slice, hash(control.limits->header.allocation, sizeof control.limits->header.allocation));
      store(&turn->gpu, hash(control.limits->devices[i].uuid, sizeof control.limits->devices[i].uuid));
    }
    if (takes) __atomic_store_n(&devices[i].turn, turn, __ATOMIC_RELEASE);
    __atomic_store_n(&devices[i].takes, takes, __ATOMIC_RELEASE);
  }
}

/* What the other slices on the GPU say. */
struct view {
  bool any;            /* another slice takes turns */
  bool behind;         /* one that waits was charged less */
  uint64_t held_until; /* end of another slice's turn; 0: no other has the turn */
  uint32_t holder;
  uint64_t least_level; /* of those that take turns */
};

static bool goes_before(const struct vgpu_turn *a, uint64_t level, uint64_t slice) {
  return a->level_ns != level ? a->level_ns < level : a->slice < slice;
}

static void tell_apart(uint32_t device) {
  bool apart = devices[device].apart || devices[device].impatient || devices[device].overruns;
  __atomic_store_n(&devices[device].turn->pauses, apart, __ATOMIC_RELAXED);
}

static void count_turn(uint32_t device, uint64_t until) {
  if (until > devices[device].counted_ns) patience_spend(device, until - devices[device].counted_ns);
  devices[device].counted_ns = until;
}

static struct view look(uint32_t device, uint64_t now) {
  const struct vgpu_turn *own = devices[device].turn;
  struct view view = {.least_level = UINT64_MAX};
  devices[device].looked_ns = now;
  if (devices[device].counted_ns != 0) count_turn(device, now);
  devices[device].impatient = !patience_lasts(device, devices[device].share_ppm);
  tell_apart(device);
  if (devices[device].impatient) {
    store(&devices[device].disturbed_ns, now);
    return view;
  }
  for (uint32_t i = 0; i < devices[device].peers; i++) {
    struct vgpu_turn turns[VGPU_MAX_DEVICES];
    if (peers_read(device, i, turns, sizeof turns, offsetof(struct vgpu_activity, turns)) != sizeof turns) continue;
    for (uint32_t at = 0; at < VGPU_MAX_DEVICES && turns[at].gpu != 0; at++) {
      const struct vgpu_turn *turn = &turns[at];
      if (turn->gpu != load(&own->gpu) || turn->busy_until_ns <= now) continue;
      if (turn->pauses) {
        store(&devices[device].disturbed_ns, now);
        continue;
      }
      view.any = true;
      if (turn->level_ns < view.least_level) view.least_level = turn->level_ns;
      if (turn->holds_until_ns > now && turn->holds_until_ns - now <= 2 * UNKNOWN_NS) {
        view.held_until = turn->holds_until_ns;
        view.holder = i * VGPU_MAX_DEVICES + at;
      }
      if (turn->waits_until_ns > now && goes_before(turn, load(&own->level_ns), own->slice)) view.behind = true;
    }
  }
  if (view.any) store(&devices[device].contended_ns, now);
  return view;
}

static bool takes_turns(uint32_t device) {
  return __atomic_load_n(&devices[device].takes, __ATOMIC_ACQUIRE);
}

bool turn_is_taken(uint32_t device) {
  if (!takes_turns(device) || __atomic_load_n(&devices[device].apart, __ATOMIC_RELAXED)) return false;
  return os_now_ns() - load(&devices[device].contended_ns) < BUSY_NS;
}

bool turn_is_undisturbed(uint32_t device) {
  return turn_is_taken(device) && os_now_ns() - load(&devices[device].disturbed_ns) > BUSY_NS;
}

bool turn_is_alone(uint32_t device) {
  if (!takes_turns(device)) return devices[device].peers == 0;
  uint64_t now = os_now_ns();
  return now - load(&devices[device].contended_ns) > BUSY_NS && now - load(&devices[device].disturbed_ns) > BUSY_NS;
}

/* ---- the turn ---- */

/* Waits until the launches of this turn are complete, and keeps the turn until then. */
static void drain(uint32_t device, void (*waiting)(void)) {
  struct vgpu_turn *turn = devices[device].turn;
  uint64_t now = os_now_ns(), end = load(&turn->holds_until_ns) - LINGER_NS, most = now + OVERRUN_NS;
  flight_pause(device);
  if (devices[device].unknown) end = now;
  if (end > now) most = end + OVERRUN_NS;
  while (flight_runs(device) && now < most) {
    uint64_t left = end > now ? end - now : 0;
    if (left == 0) store(&turn->holds_until_ns, now + 2 * LINGER_NS);
    waiting();
    now = os_now_ns();
    os_sleep_until(now + (left > LONG_POLL_NS ? LONG_POLL_NS : left > 2 * POLL_NS ? left - POLL_NS : POLL_NS));
    now = os_now_ns();
  }
  waiting();
}

static void release(uint32_t device) {
  struct vgpu_turn *turn = devices[device].turn;
  /* Launches that are incomplete now run beside those of the next turn. */
  devices[device].overruns = flight_runs(device);
  if (devices[device].overruns) tell_apart(device);
  devices[device].free_from_ns = os_now_ns();
  if (devices[device].counted_ns != 0) count_turn(device, devices[device].free_from_ns);
  devices[device].counted_ns = 0;
  store(&turn->holds_until_ns, 0);
  store(&turn->used_ns, 0);
  __atomic_fetch_add(&turn->ended, 1, __ATOMIC_SEQ_CST);
  os_wake_word(&turn->ended);
}

static bool holds(const struct vgpu_turn *turn, uint64_t now) {
  return load(&turn->holds_until_ns) > now;
}

void turn_keep(uint32_t device, uint64_t more_ns) {
  struct vgpu_turn *turn = __atomic_load_n(&devices[device].turn, __ATOMIC_ACQUIRE);
  uint64_t now = os_now_ns(), until = turn == NULL ? 0 : load(&turn->holds_until_ns);
  uint64_t after = now + 2 * LINGER_NS + (more_ns < OVERRUN_NS / 2 ? more_ns : OVERRUN_NS / 2);
  if (until <= now || until >= after || !lock_try(&devices[device].lock)) return;
  if (holds(turn, now)) store(&turn->holds_until_ns, after);
  lock_release(&devices[device].lock);
}

void turn_shorten(uint32_t device) {
  struct vgpu_turn *turn = __atomic_load_n(&devices[device].turn, __ATOMIC_ACQUIRE);
  uint64_t now = os_now_ns(), most = now + 2 * LINGER_NS;
  if (turn == NULL || load(&turn->holds_until_ns) <= most || !lock_try(&devices[device].lock)) return;
  if (holds(turn, most)) store(&turn->holds_until_ns, most);
  lock_release(&devices[device].lock);
}

void turn_end(uint32_t device, void (*waiting)(void)) {
  struct vgpu_turn *turn = __atomic_load_n(&devices[device].turn, __ATOMIC_ACQUIRE);
  if (turn == NULL || !holds(turn, os_now_ns())) return;
  lock_take(&devices[device].lock);
  if (holds(turn, os_now_ns())) {
    drain(device, waiting);
    release(device);
  }
  lock_release(&devices[device].lock);
}

/* Adds launches to the turn. */
static void extend(uint32_t device, uint64_t gpu_ns, bool unknown, uint64_t now) {
  struct vgpu_turn *turn = devices[device].turn;
  uint64_t until = load(&turn->holds_until_ns);
  until = until > now + LINGER_NS && !devices[device].unknown ? until - LINGER_NS : now;
  devices[device].unknown = unknown;
  store(&turn->holds_until_ns, (unknown ? now + UNKNOWN_NS : until + gpu_ns) + LINGER_NS);
  store(&turn->waits_until_ns, 0);
  store(&turn->busy_until_ns, now + BUSY_NS);
  __atomic_fetch_add(&turn->used_ns, gpu_ns, __ATOMIC_RELAXED);
  __atomic_fetch_add(&turn->level_ns, law_wall_ns(gpu_ns, devices[device].share_ppm, 0), __ATOMIC_RELAXED);
}

static bool still_holds(uint32_t device, uint32_t holder, struct vgpu_turn *turn) {
  size_t offset = offsetof(struct vgpu_activity, turns) + holder % VGPU_MAX_DEVICES * sizeof *turn;
  return peers_read(device, holder / VGPU_MAX_DEVICES, turn, sizeof *turn, offset) == sizeof *turn &&
         turn->holds_until_ns > os_now_ns();
}

static void wait_for_holder(uint32_t device, const struct view *view, uint64_t now) {
  uint64_t until = view->held_until > now ? view->held_until : now + POLL_NS;
  size_t offset = offsetof(struct vgpu_activity, turns) + view->holder % VGPU_MAX_DEVICES * sizeof(struct vgpu_turn) +
                  offsetof(struct vgpu_turn, ended);
  struct vgpu_turn turn;
  const uint32_t *word = view->held_until == 0 ? NULL : peers_word(device, view->holder / VGPU_MAX_DEVICES, offset);
  if (view->behind || word == NULL) {
    os_sleep_until(until < now + LONG_POLL_NS ? until + POLL_NS : now + LONG_POLL_NS);
    return;
  }
  if (!still_holds(device, view->holder, &turn)) return;
  uint64_t most = until < now + WAIT_NS / 2 ? until : now + WAIT_NS / 2;
  os_wait_word(word, turn.ended, most);
  /* Another slice may wake its peers as often as it likes, and may have cut its file. */
  now = os_now_ns();
  if (now < most && still_holds(device, view->holder, &turn)) os_sleep_until(now + LONG_POLL_NS);
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
  /* A turn that ended by itself. */
  if (devices[device].counted_ns != 0) count_turn(device, load(&turn->holds_until_ns));
  devices[device].counted_ns = 0;
  struct view view = look(device, now);
  catch_up(turn, &view);
  /* A slice that waits for the turn takes it soon: otherwise it does not count as one. */
  if (view.held_until != 0 || !view.behind) devices[device].free_from_ns = now;
  if (view.held_until != 0 || (view.behind && now < devices[device].free_from_ns + FREE_MOST_NS)) {
    store(&turn->waits_until_ns, now + WAIT_NS);
    wait_for_holder(device, &view, now);
    patience_spend(device, os_now_ns() - now);
    return false;
  }
  store(&turn->holds_until_ns, now + LINGER_NS);
  store(&turn->used_ns, 0);
  devices[device].counted_ns = now;
  /* Two slices may have seen no holder at the same time: one of them sees the other now. */
  view = look(device, now);
  if (view.held_until != 0 && view.behind) {
    store(&turn->holds_until_ns, 0);
    devices[device].counted_ns = 0;
    return false;
  }
  return true;
}

/* Processes of one slice switch between their contexts in its turn, and do not know of each other's launches. */
static bool has_siblings(uint32_t device) {
  return usage_launchers(control.ledger.usage, device) > 1 &&
         (!usage_reclaim_rarely(control.ledger.usage, &control.self) ||
          usage_launchers(control.ledger.usage, device) > 1);
}

static void take(uint32_t device, uint64_t gpu_ns, bool unknown, void (*waiting)(void)) {
  struct vgpu_turn *turn = devices[device].turn;
  uint64_t now = os_now_ns();
  __atomic_store_n(&devices[device].apart, pauses_are_long(gpu_ns) || has_siblings(device), __ATOMIC_RELAXED);
  tell_apart(device);
  store(&turn->busy_until_ns, now + BUSY_NS);
  if (devices[device].apart) {
    if (load(&turn->holds_until_ns) != 0) release(device);
    if (now > devices[device].looked_ns + BUSY_NS / 4) look(device, now);
    return;
  }
  /* A turn that ended by itself: what follows is not of it. */
  if (!holds(turn, now)) flight_pause(device);
  for (;;) {
    bool mine = holds(turn, now);
    uint64_t used = load(&turn->used_ns);
    if (mine && used > 0 && used + gpu_ns / 2 > TURN_NS) {
      struct view view = look(device, now);
      uint64_t until = load(&turn->holds_until_ns);
      if (view.any && view.behind) {
        drain(device, waiting);
        release(device);
        now = os_now_ns();
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
    if (mine || !takes_turns(device) || seize(device, now)) break;
    waiting();
    now = os_now_ns();
    store(&turn->busy_until_ns, now + BUSY_NS);
  }
  if (devices[device].overruns) {
    devices[device].overruns = flight_runs(device);
    tell_apart(device);
  }
  extend(device, gpu_ns, unknown, os_now_ns());
}

void turn_take(uint32_t device, uint64_t gpu_ns, bool unknown, void (*waiting)(void)) {
  if (!takes_turns(device)) return;
  lock_take(&devices[device].lock);
  take(device, gpu_ns, unknown, waiting);
  lock_release(&devices[device].lock);
}

void turn_adjust(uint32_t device, int64_t by_ns) {
  struct vgpu_turn *turn = __atomic_load_n(&devices[device].turn, __ATOMIC_ACQUIRE);
  if (turn == NULL) return;
  uint64_t wall = law_wall_ns((uint64_t)(by_ns < 0 ? -by_ns : by_ns), devices[device].share_ppm, 0);
  if (by_ns < 0 && wall > load(&turn->level_ns)) wall = load(&turn->level_ns);
  __atomic_fetch_add(&turn->level_ns, by_ns < 0 ? -wall : wall, __ATOMIC_RELAXED);
}

static void reset(void) {
  for (uint32_t i = 0; i < VGPU_MAX_DEVICES; i++)
    devices[i].lock.taken = 0;
}
AFTER_FORK(reset)
