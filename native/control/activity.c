#include "activity.h"
#include "control.h"
#include "fork.h"
#include "gate_state.h"
#include "lock.h"
#include "os.h"
#include "own_activity.h"
#include "pauses.h"
#include "vgpu_abi.h"
#include <string.h>

/*
 * Streams with work that may be incomplete. With more streams, the claim lasts until the predicted end of all launches.
 */
#define STREAMS 16u
/* Work takes longer than predicted while other processes use the GPU, about twice as long beside a kernel that runs
 * already. The claim therefore exceeds the predicted end by as much time as the work takes, up to this; and by this and
 * the remaining time while a thread waits for the GPU, which cannot renew the claim. */
#define MORE_MOST_NS 50000000ull
/* A program that launches again within this time of a wait works in steps, as a decoder does token by token: a kernel
 * of a low slice that begins between two steps delays the second one. */
#define PAUSE_MOST_NS 500000ull

uint32_t activity_now;

struct busy_stream {
  CUstream stream;
  uint64_t last; /* number of its last launch */
};

static struct {
  struct lock lock;
  struct vgpu_activity *file;
  uint64_t launches;
  uint64_t began_ns;    /* since when there were always incomplete launches, by their predicted ends */
  uint64_t until_ns;    /* predicted end of all launches */
  uint64_t ended_at_ns; /* when a wait showed that all launches are complete; 0: they are not, or none was seen */
  uint64_t pause_ns;    /* how long the program pauses between such a wait and its next launch */
  uint32_t waiting;     /* threads that wait for the GPU */
  uint32_t count;
  bool more; /* there were more streams than entries */
  struct busy_stream streams[STREAMS];
} here;

static uint64_t claim_of(uint64_t now) {
  if (here.count == 0 && !here.more) return here.ended_at_ns == 0 ? 0 : here.ended_at_ns + 2 * here.pause_ns;
  uint64_t takes = here.until_ns - here.began_ns;
  uint64_t end = here.until_ns + (takes < MORE_MOST_NS ? takes : MORE_MOST_NS);
  uint64_t left = end > now ? end - now : 0;
  if (here.waiting > 0) left = 2 * left + MORE_MOST_NS;
  if (left == 0) return 0;
  return now + (left < VGPU_CLAIM_MOST_NS ? left : VGPU_CLAIM_MOST_NS);
}

static void publish(uint64_t now) {
  uint32_t slot = __atomic_load_n(&control.ledger.slot, __ATOMIC_RELAXED);
  if (here.file == NULL || slot >= VGPU_MAX_PROCESSES) return;
  __atomic_store_n(&here.file->claimed_until_ns[slot], claim_of(now), __ATOMIC_RELEASE);
}

static void clear(void) {
  here.count = 0;
  here.more = false;
  here.until_ns = 0;
}

/* The longest of the last few pauses, if they are short. */
static void learn_pause(uint64_t took_ns) {
  if (took_ns > PAUSE_MOST_NS)
    here.pause_ns /= 2;
  else if (took_ns > here.pause_ns)
    here.pause_ns = took_ns;
  else
    here.pause_ns -= (here.pause_ns - took_ns) / 2;
}

void activity_set(enum activity activity) {
  lock_take(&here.lock);
  if (activity != ACTIVITY_NONE) here.file = own_activity();
  if (here.file == NULL) activity = ACTIVITY_NONE;
  if (activity == ACTIVITY_NONE && activity_is_on()) {
    clear();
    here.ended_at_ns = 0;
    publish(os_now_ns());
  }
  /* Launches of a high slice whose tokens come from a thread's credit claim too, so all launches take the slow path. */
  bool slow = activity == ACTIVITY_OF_LAUNCHES;
  if (slow != activity_is_of(ACTIVITY_OF_LAUNCHES))
    atomic_fetch_add_explicit(&gate.slow_path_reasons, slow ? 1 : -1u, memory_order_relaxed);
  __atomic_store_n(&activity_now, activity, __ATOMIC_RELAXED);
  lock_release(&here.lock);
}

static void note_stream(CUstream stream) {
  for (uint32_t i = 0; i < here.count; i++)
    if (here.streams[i].stream == stream) {
      here.streams[i].last = here.launches;
      return;
    }
  if (here.count < STREAMS)
    here.streams[here.count++] = (struct busy_stream){stream, here.launches};
  else
    here.more = true;
}

void activity_launch(CUstream stream, uint64_t gpu_ns) {
  uint64_t now = os_now_ns();
  lock_take(&here.lock);
  /* Streams whose work must be complete by now, although no wait showed it, do not extend the next claim. */
  if (here.waiting == 0 && here.until_ns + MORE_MOST_NS < now) clear();
  if (here.ended_at_ns != 0) learn_pause(now - here.ended_at_ns);
  here.ended_at_ns = 0;
  here.launches++;
  note_stream(stream);
  if (here.until_ns <= now) here.began_ns = here.until_ns = now;
  here.until_ns += gpu_ns;
  publish(now);
  lock_release(&here.lock);
}

uint64_t activity_wait(void) {
  pauses_end();
  lock_take(&here.lock);
  uint64_t mark = here.launches;
  here.waiting++;
  publish(os_now_ns());
  lock_release(&here.lock);
  return mark;
}

static void end_wait(void) {
  pauses_begin();
  if (here.waiting > 0) here.waiting--;
  uint64_t now = os_now_ns();
  if (here.count == 0 && !here.more) {
    if (here.ended_at_ns == 0) here.ended_at_ns = now;
    here.until_ns = 0;
  }
  publish(now);
}

void activity_waited(uint64_t mark) {
  (void)mark;
  lock_take(&here.lock);
  end_wait();
  lock_release(&here.lock);
}

void activity_waited_for_stream(uint64_t mark, CUstream stream) {
  lock_take(&here.lock);
  for (uint32_t i = 0; i < here.count; i++)
    if (here.streams[i].stream == stream && here.streams[i].last <= mark) {
      here.streams[i] = here.streams[--here.count];
      break;
    }
  end_wait();
  lock_release(&here.lock);
}

void activity_waited_for_all(uint64_t mark) {
  lock_take(&here.lock);
  if (here.launches == mark) clear();
  end_wait();
  lock_release(&here.lock);
}

/* The child has no work; the claims belong to the parent. */
static void reset(void) {
  struct vgpu_activity *file = here.file;
  memset(&here, 0, sizeof here);
  here.file = file;
}
AFTER_FORK(reset)
