#include "flight.h"
#include "capture.h"
#include "control.h"
#include "devices.h"
#include "driver.h"
#include "event_cost.h"
#include "fork.h"
#include "gate_state.h"
#include "lock.h"
#include "os.h"
#include "usage.h"
#include <string.h>

#define STREAMS 16u
/* A span whose events a later one uses is kept one place longer. */
#define PLACES 10u
#define SPANS (PLACES - 2)
/* GPU time charged in a span. */
#define SPAN_NS 4000000ull
/* Differences are settled when they exceed this part of the charge and this much: the program itself leaves small gaps.
 * They are added up over so much charge. */
#define SETTLED_PART 64
#define SETTLED_LEAST_NS 200000
#define SUM_OVER_NS 100000000
/* A span is late if it is incomplete so long after its predicted end. */
#define LATE_NS 1000000ull
/* Less than their part that others had of the GPU counts up to this much. */
#define BESIDE_LEAST_NS 10000000
/* What may be queued, doubled with each span that took about what it was charged. */
#define ROOM_LEAST_NS 1000000ull
#define ROOM_MOST_NS 10000000ull
/* Programs that wait for their launches now and then, at least this often, are timed only for so long after one that
 * took so much longer than predicted: an event in each of their requests would cost them more than it shows. */
#define WAITS_NS 50000000ull
#define SURPRISE_NS 1000000
#define WATCH_NS 5000000000ull
/* Launches in several streams, or of several threads, are not compared with their charge for so long. */
#define MIXED_NS 1000000000ull
/* Error of the driver's time stamps. */
#define STAMP_ERROR_NS 10000

struct span {
  CUstream stream;
  CUcontext context;    /* of its own events; NULL: there are none */
  CUevent first, ended; /* its own events */
  CUevent began;        /* `first`, or `ended` of the span before */
  bool timed;           /* `began` was recorded */
  bool open;            /* `ended` was not yet */
  bool unknown;
  bool clean; /* its charge is that of its launches */
  uint64_t opened_at_ns, closed_at_ns;
  uint64_t tokens_ns;
  int64_t charged_ns; /* for its launches: the same without tokens that were left before and after */
  int64_t busy_ns;    /* for how long the thread waited because the GPU was busy */
  int64_t doubt_ns;   /* for how long the GPU may have been idle meanwhile */
};

/* The lock is held across queries and records of the driver, so that no other thread destroys the stream meanwhile. */
static struct flight {
  struct lock lock;
  uint32_t first, count;
  struct span spans[PLACES];
  CUstream last_stream;
  const int64_t *last_thread;
  uint64_t mixed_until_ns;
  uint64_t watched_until_ns;
  uint64_t surprise_ns; /* the most that a launch took longer than predicted, lately */
  uint64_t room_ns;
  uint64_t settled_until_ns; /* launches before this time were settled with their span */
  uint64_t complete_at_ns;   /* when the last span was found complete */
  uint64_t waited_at_ns;     /* when the program last waited for the GPU */
  uint32_t streams;
  CUstream used[STREAMS];
  int64_t excess_ns, compared_ns;
  int64_t beside_ns; /* the same beside others, with the part that is theirs subtracted */
} flights[VGPU_MAX_DEVICES];

/* Tokens of this thread. */
static __thread const int64_t *own_credit[VGPU_MAX_DEVICES];
/* The last call of flight_add in this thread recorded an event on an idle stream. */
static __thread bool recorded_on_idle;
/* Launches take the slow path while nothing is known to be incomplete, so that the first one is noted. */
static uint32_t holds_path;

static void hold_path(bool hold) {
  uint32_t before = __atomic_exchange_n(&holds_path, hold, __ATOMIC_RELAXED);
  if (before != hold) atomic_fetch_add_explicit(&gate.slow_path_reasons, hold ? 1 : -1u, memory_order_relaxed);
}

bool flight_is_over(void) {
  return __atomic_load_n(&holds_path, __ATOMIC_RELAXED) != 0;
}

static struct span *span_at(struct flight *flight, uint32_t i) {
  return &flight->spans[(flight->first + i) % PLACES];
}

static struct span *open_span(struct flight *flight) {
  struct span *span = flight->count == 0 ? NULL : span_at(flight, flight->count - 1);
  return span != NULL && span->open ? span : NULL;
}

/* ---- since when work may be incomplete ---- */

static void publish(uint32_t device, bool runs) {
  struct flight *flight = &flights[device];
  bool unknown = false;
  for (uint32_t i = 0; i < flight->count; i++)
    unknown |= span_at(flight, i)->unknown;
  uint64_t since = flight->count > 0 ? span_at(flight, 0)->opened_at_ns : flight->complete_at_ns;
  usage_note_launched(&control.ledger.usage->ledger[device][control.ledger.slot], runs ? since : 0, unknown);
  if (runs) return hold_path(false);
  flight->streams = 0;
  for (uint32_t i = 0; i < VGPU_MAX_DEVICES; i++)
    if (flights[i].streams > 0) return;
  hold_path(true);
}

/* An error tells nothing: the thread may have another context, or none. */
static bool stream_runs(const struct flight *flight) {
  for (uint32_t i = 0; i < flight->streams; i++)
    if (driver.cuStreamQuery(flight->used[i]) != CUDA_SUCCESS) return true;
  return false;
}

static void note_stream(struct flight *flight, CUstream stream) {
  for (uint32_t i = 0; i < flight->streams; i++)
    if (flight->used[i] == stream) return;
  if (flight->streams < STREAMS) flight->used[flight->streams++] = stream;
}

/* ---- spans ---- */

static void destroy_events(struct span *span) {
  driver.cuEventDestroy_v2(span->first);
  driver.cuEventDestroy_v2(span->ended);
  span->context = NULL;
}

static bool have_events(struct span *span, CUstream stream) {
  CUcontext current = NULL, context = devices_stream_context(stream);
  if (driver.cuCtxGetCurrent(&current) != CUDA_SUCCESS || current == NULL || current != context) return false;
  if (span->context == context) return true;
  if (span->context != NULL) destroy_events(span);
  if (driver.cuEventCreate(&span->first, CU_EVENT_DEFAULT) != CUDA_SUCCESS) return false;
  if (driver.cuEventCreate(&span->ended, CU_EVENT_DEFAULT) != CUDA_SUCCESS) {
    driver.cuEventDestroy_v2(span->first);
    return false;
  }
  span->context = context;
  return true;
}

/* If the program launched so slowly that the GPU was done before, it may have been idle meanwhile. */
static void visit(struct span *span, const int64_t *credit_ns, uint64_t now) {
  int64_t doubt_ns = (int64_t)(now - span->opened_at_ns) - span->busy_ns - (span->charged_ns - *credit_ns);
  if (doubt_ns > span->doubt_ns) span->doubt_ns = doubt_ns;
}

static void mix(struct flight *flight, uint64_t now) {
  flight->mixed_until_ns = now + MIXED_NS;
  for (uint32_t i = 0; i < flight->count; i++)
    span_at(flight, i)->clean = false;
}

static void close_span(struct flight *flight, uint32_t device, bool record, uint64_t now) {
  struct span *span = open_span(flight);
  if (span == NULL) return;
  const int64_t *credit = own_credit[device];
  span->open = false;
  span->closed_at_ns = now;
  if (credit != NULL && credit == flight->last_thread) {
    visit(span, credit, now);
    span->charged_ns -= *credit;
  } else {
    span->clean = false;
  }
  if (span->timed)
    span->timed = record && captures == 0 && driver.cuEventRecord(span->ended, span->stream) == CUDA_SUCCESS;
}

static struct span *begin_span(struct flight *flight, uint32_t device, CUstream stream, bool timed, uint64_t now) {
  const struct span *before = flight->count == 0 ? NULL : span_at(flight, flight->count - 1);
  struct span *span = span_at(flight, flight->count++);
  bool follows = before != NULL && before->timed && before->closed_at_ns == now && before->stream == stream;
  bool times = timed && captures == 0 && (now > flight->waited_at_ns + WAITS_NS || now < flight->watched_until_ns) &&
               have_events(span, stream);
  span->stream = stream;
  span->open = true;
  span->unknown = false;
  span->clean = now >= flight->mixed_until_ns;
  span->opened_at_ns = now;
  span->tokens_ns = 0;
  span->busy_ns = span->doubt_ns = 0;
  span->charged_ns = *own_credit[device];
  span->began = follows ? before->ended : span->first;
  recorded_on_idle = times && !follows && driver.cuStreamQuery(stream) == CUDA_SUCCESS;
  span->timed = times && (follows || driver.cuEventRecord(span->first, stream) == CUDA_SUCCESS);
  return span;
}

void flight_enter(uint32_t device, const int64_t *credit_ns) {
  own_credit[device] = credit_ns;
}

void flight_add(uint32_t device, CUstream stream, uint64_t gpu_ns, bool unknown, bool timed) {
  struct flight *flight = &flights[device];
  recorded_on_idle = false;
  lock_take(&flight->lock);
  uint64_t now = os_now_ns();
  if (flight->count > 0 && (stream != flight->last_stream || own_credit[device] != flight->last_thread))
    mix(flight, now);
  flight->last_stream = stream;
  struct span *span = open_span(flight);
  if (span != NULL && flight->count < SPANS &&
      (span->stream != stream || span->unknown || unknown || span->tokens_ns >= SPAN_NS)) {
    close_span(flight, device, true, now);
    span = NULL;
  }
  flight->last_thread = own_credit[device];
  if (span == NULL && flight->count < SPANS) span = begin_span(flight, device, stream, timed, now);
  bool runs = flight->streams > 0;
  note_stream(flight, stream);
  if (span != NULL) {
    visit(span, own_credit[device], now);
    span->tokens_ns += gpu_ns;
    span->charged_ns += (int64_t)gpu_ns;
    span->unknown |= unknown;
  }
  if (!runs || unknown) publish(device, true);
  lock_release(&flight->lock);
}

bool flight_recorded_on_idle(void) {
  return recorded_on_idle;
}

void flight_pause(uint32_t device) {
  struct flight *flight = &flights[device];
  lock_take(&flight->lock);
  close_span(flight, device, true, os_now_ns());
  lock_release(&flight->lock);
}

void flight_part(uint32_t device, uint64_t waited_ns) {
  struct flight *flight = &flights[device];
  lock_take(&flight->lock);
  struct span *span = open_span(flight);
  if (span != NULL) span->busy_ns += (int64_t)waited_ns;
  if (flight->count == 1) close_span(flight, device, true, os_now_ns());
  lock_release(&flight->lock);
}

void flight_wait(void) {
  uint64_t now = os_now_ns();
  for (uint32_t device = 0; device < control.limits->header.device_count; device++) {
    struct flight *flight = &flights[device];
    if (flight->streams == 0) continue;
    lock_take(&flight->lock);
    close_span(flight, device, now < flight->watched_until_ns, now);
    flight->waited_at_ns = now;
    lock_release(&flight->lock);
  }
}

/* By how much the last launches took longer than predicted, as the end of a wait shows. */
static void note_surprise(struct flight *flight, uint64_t now) {
  if (now >= flight->watched_until_ns) flight->surprise_ns = 0;
  if (flight->count == 0) return;
  const struct span *last = span_at(flight, flight->count - 1);
  int64_t late_ns = (int64_t)(now - last->opened_at_ns) - last->charged_ns;
  if (last->open || late_ns <= SURPRISE_NS) return;
  flight->watched_until_ns = now + WATCH_NS;
  if ((uint64_t)late_ns > flight->surprise_ns) flight->surprise_ns = (uint64_t)late_ns;
}

void flight_waited(uint32_t alone) {
  uint64_t now = os_now_ns();
  for (uint32_t device = 0; device < control.limits->header.device_count; device++) {
    struct flight *flight = &flights[device];
    if (flight->streams == 0 || captures != 0) continue;
    lock_take(&flight->lock);
    if ((alone >> device & 1) != 0) note_surprise(flight, now);
    /* Spans with events are kept until these are read. */
    if (flight->streams > 0 && !stream_runs(flight)) publish(device, false);
    lock_release(&flight->lock);
  }
}

bool flight_runs(uint32_t device) {
  struct flight *flight = &flights[device];
  if (captures != 0) return false;
  lock_take(&flight->lock);
  bool runs = stream_runs(flight);
  lock_release(&flight->lock);
  return runs;
}

struct flight_unknown flight_unknown(uint32_t device) {
  struct flight *flight = &flights[device];
  struct flight_unknown unknown = {0, 0};
  lock_take(&flight->lock);
  for (uint32_t i = 0; i < flight->count; i++) {
    const struct span *span = span_at(flight, i);
    if (!span->unknown) continue;
    if (unknown.count++ == 0) unknown.since_ns = span->opened_at_ns;
  }
  lock_release(&flight->lock);
  return unknown;
}

/* ---- what they took ---- */

static void settle(struct flight *flight, const struct span *span, float took_ms, struct flight_beside beside,
                   uint64_t now) {
  int64_t took_ns = (int64_t)((double)took_ms * 1e6) - event_cost_ns();
  if (took_ns <= 0 || took_ns > (int64_t)(now - span->opened_at_ns) + STAMP_ERROR_NS || !span->clean) return;
  int64_t excess_ns = took_ns - span->charged_ns, doubt_ns = beside.in_turn ? 0 : span->doubt_ns;
  if (excess_ns > 0) excess_ns -= excess_ns < doubt_ns ? excess_ns : doubt_ns;
  if (beside.own_ppm < VGPU_PPM_WHOLE) {
    /* Others may have had the GPU for the whole of a short span, and for the part that is theirs of many. */
    int64_t others_ns = took_ns * (int64_t)(VGPU_PPM_WHOLE - beside.own_ppm) / VGPU_PPM_WHOLE;
    flight->beside_ns += excess_ns - others_ns;
    if (flight->beside_ns < -BESIDE_LEAST_NS) flight->beside_ns = -BESIDE_LEAST_NS;
    if (excess_ns > 0) excess_ns = flight->beside_ns > 0 ? flight->beside_ns : 0;
    if (excess_ns > 0) flight->beside_ns = 0;
  }
  if (excess_ns > (int64_t)ROOM_LEAST_NS && beside.own_ppm == VGPU_PPM_WHOLE) flight->room_ns = ROOM_LEAST_NS / 2;
  flight->settled_until_ns = span->closed_at_ns;
  flight->excess_ns += excess_ns;
  flight->compared_ns += span->charged_ns > 0 ? span->charged_ns : 0;
}

/* Whether the span is complete; its events are read then. */
static bool complete(struct flight *flight, struct span *span, struct flight_beside beside, uint64_t now) {
  float took_ms;
  if (span->open) return false;
  if (!span->timed) return driver.cuStreamQuery(span->stream) != CUDA_ERROR_NOT_READY;
  CUresult result = driver.cuEventElapsedTime(&took_ms, span->began, span->ended);
  if (result == CUDA_ERROR_NOT_READY) return false;
  if (result == CUDA_SUCCESS) settle(flight, span, took_ms, beside, now);
  return true;
}

static int64_t take_excess(struct flight *flight) {
  int64_t excess_ns = flight->excess_ns, part_ns = flight->compared_ns / SETTLED_PART;
  int64_t least_ns = part_ns > SETTLED_LEAST_NS ? part_ns : SETTLED_LEAST_NS;
  bool settles = excess_ns >= least_ns || excess_ns <= -least_ns;
  if (settles || flight->compared_ns > SUM_OVER_NS) flight->excess_ns = flight->compared_ns = 0;
  return settles ? excess_ns : 0;
}

int64_t flight_collect(uint32_t device, struct flight_beside beside) {
  struct flight *flight = &flights[device];
  if (captures != 0 || (flight->count == 0 && flight->streams == 0) || !lock_try(&flight->lock)) return 0;
  uint64_t now = os_now_ns();
  uint32_t before = flight->count;
  while (flight->count > 0 && complete(flight, span_at(flight, 0), beside, now)) {
    flight->first = (flight->first + 1) % PLACES;
    flight->count--;
    flight->complete_at_ns = now;
    flight->room_ns = flight->room_ns == 0 ? ROOM_LEAST_NS : 2 * flight->room_ns;
    if (flight->room_ns > ROOM_MOST_NS) flight->room_ns = ROOM_MOST_NS;
  }
  if (flight->streams > 0 && (flight->count != before || flight->count == 0))
    publish(device, flight->count > 0 || stream_runs(flight));
  int64_t excess_ns = take_excess(flight);
  lock_release(&flight->lock);
  return excess_ns;
}

uint64_t flight_incomplete_ns(uint32_t device, bool runs_alone) {
  struct flight *flight = &flights[device];
  uint64_t charged_ns = 0, done_ns = 0;
  lock_take(&flight->lock);
  const struct span *first = span_at(flight, 0);
  bool late = flight->count == SPANS;
  for (uint32_t i = 0; i < flight->count; i++)
    charged_ns += span_at(flight, i)->tokens_ns;
  if (runs_alone && flight->count > 0) {
    done_ns =
        os_now_ns() - (first->opened_at_ns > flight->complete_at_ns ? first->opened_at_ns : flight->complete_at_ns);
    late |= done_ns > first->tokens_ns + LATE_NS;
  }
  lock_release(&flight->lock);
  return late ? FLIGHT_LATE : charged_ns > done_ns ? charged_ns - done_ns : 0;
}

uint64_t flight_room_ns(uint32_t device) {
  uint64_t room_ns = __atomic_load_n(&flights[device].room_ns, __ATOMIC_RELAXED);
  return room_ns < ROOM_LEAST_NS ? ROOM_LEAST_NS : room_ns;
}

uint64_t flight_surprise_ns(uint32_t device) {
  return __atomic_load_n(&flights[device].surprise_ns, __ATOMIC_RELAXED);
}

bool flight_settles(uint32_t device, uint64_t launched_at_ns, int64_t more_ns) {
  struct flight *flight = &flights[device];
  lock_take(&flight->lock);
  bool settled = launched_at_ns < flight->settled_until_ns;
  for (uint32_t i = 0; i < flight->count && !settled; i++) {
    struct span *span = span_at(flight, i);
    if (launched_at_ns < span->opened_at_ns || (!span->open && launched_at_ns >= span->closed_at_ns)) continue;
    span->charged_ns += more_ns;
    break;
  }
  lock_release(&flight->lock);
  return settled;
}

void flight_disturb(uint32_t device) {
  struct flight *flight = &flights[device];
  lock_take(&flight->lock);
  for (uint32_t i = 0; i < flight->count; i++)
    span_at(flight, i)->clean = false;
  lock_release(&flight->lock);
}

/* ---- what ends ---- */

void flight_drop_stream(CUstream stream) {
  if (!control_enforces()) return;
  for (uint32_t device = 0; device < control.limits->header.device_count; device++) {
    struct flight *flight = &flights[device];
    lock_take(&flight->lock);
    struct span *span = open_span(flight);
    if (span != NULL && span->stream == stream) close_span(flight, device, true, os_now_ns());
    /* Without events nothing tells when they are complete. */
    while (flight->count > 0 && span_at(flight, flight->count - 1)->stream == stream &&
           !span_at(flight, flight->count - 1)->timed)
      flight->count--;
    for (uint32_t i = 0; i < flight->streams; i++)
      if (flight->used[i] == stream) flight->used[i] = flight->used[--flight->streams];
    lock_release(&flight->lock);
  }
}

int64_t flight_drop_context(uint32_t device, CUcontext context) {
  struct flight *flight = &flights[device];
  int64_t excess_ns = 0;
  lock_take(&flight->lock);
  uint64_t now = os_now_ns();
  if (flight->streams > 0 && captures == 0 && stream_runs(flight)) {
    excess_ns = flight->count == 0 ? 0 : (int64_t)(now - span_at(flight, 0)->opened_at_ns);
    for (uint32_t i = 0; i < flight->count; i++)
      excess_ns -= (int64_t)span_at(flight, i)->tokens_ns;
  }
  /* Some of the streams may be the context's. */
  flight->count = 0;
  if (flight->streams > 0) publish(device, false);
  for (uint32_t i = 0; i < PLACES; i++)
    if (flight->spans[i].context == context) destroy_events(&flight->spans[i]);
  lock_release(&flight->lock);
  return excess_ns;
}

/* The launches are the parent's. */
static void reset(void) {
  hold_path(false);
  memset(flights, 0, sizeof flights);
}
AFTER_FORK(reset)
