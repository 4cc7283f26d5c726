#include "sampler.h"
#include "anchor.h"
#include "bucket.h"
#include "charge.h"
#include "control.h"
#include "driver.h"
#include "event_cost.h"
#include "flight.h"
#include "fork.h"
#include "lock.h"
#include "os.h"
#include "others.h"
#include "overlap_sampler.h"
#include "reported_use.h"
#include <string.h>

#define SAMPLES 512u
/* A sample is discarded if the GPU does not finish the launch within this time. */
#define LOST_NS 10000000000ull
/* A collection stops after this many unfinished launches. */
#define MOST_UNFINISHED 3
/* During a timing window finished samples are applied only after this many launches: applying them takes longer than a
 * launch, and launches that are submitted late overlap less. */
#define MOST_PENDING 64u
/* Error of the driver's time stamps. */
#define STAMP_ERROR_NS 10000.0
/* A delay of the host below this part of the launch's duration is ignored. */
#define DISTURBED_PART 64u

enum sample_state { SAMPLE_FREE = 0, SAMPLE_BUSY, SAMPLE_PENDING, SAMPLE_VOID };

struct sample {
  enum sample_state state;
  uint32_t anchor; /* number of the anchor that was current; 0: none */
  struct overlap_ticket ticket;
  CUcontext context; /* of the events */
  CUevent before, start, end;
  bool has_before; /* `before` was recorded directly before `start` */
  uint64_t key;
  bool idle;                /* the stream was idle before the launch */
  uint64_t submitted_at_ns; /* when the start event was submitted */
  uint64_t launched_at_ns;
  uint64_t ended_at_ns; /* when the end event was submitted */
  struct sample_request request;
};

static struct sample samples[SAMPLES]; /* used in turn, so that the oldest samples come first */
static uint32_t next_sample;
static uint32_t first_in_use;       /* samples before this one are free; changed by the thread that collects */
static uint32_t next_at_collection; /* value of `next_sample` at the last collection */
/* protects `state` and `next_sample` while a sample is taken; never held across a driver call */
static struct lock lock;
static struct lock reading; /* only one thread at a time collects */

static bool none_in_use(void) {
  return __atomic_load_n(&first_in_use, __ATOMIC_RELAXED) == __atomic_load_n(&next_sample, __ATOMIC_ACQUIRE);
}

/* The first samples and their events are in the CPU's caches, so the ring starts over while no sample is in use. */
static void start_over(void) {
  if (!none_in_use() || !lock_try(&reading)) return;
  if (none_in_use()) {
    uint32_t first = next_sample - next_sample % SAMPLES + SAMPLES;
    __atomic_store_n(&next_at_collection, first, __ATOMIC_RELAXED);
    __atomic_store_n(&first_in_use, first, __ATOMIC_RELAXED);
    __atomic_store_n(&next_sample, first, __ATOMIC_RELEASE);
  }
  lock_release(&reading);
}

static struct sample *take_sample(void) {
  struct sample *taken = NULL;
  lock_take(&lock);
  start_over();
  struct sample *sample = &samples[next_sample % SAMPLES];
  if (__atomic_load_n(&sample->state, __ATOMIC_ACQUIRE) == SAMPLE_FREE) {
    sample->state = SAMPLE_BUSY;
    __atomic_store_n(&next_sample, next_sample + 1, __ATOMIC_RELEASE);
    taken = sample;
  }
  lock_release(&lock);
  return taken;
}

static void destroy_events(struct sample *sample) {
  if (sample->before != NULL) driver.cuEventDestroy_v2(sample->before);
  driver.cuEventDestroy_v2(sample->start);
  driver.cuEventDestroy_v2(sample->end);
  sample->context = NULL;
}

static bool have_events(struct sample *sample, CUcontext context) {
  if (sample->context == context) return true;
  if (sample->context != NULL) {
    destroy_events(sample);
  }
  if (driver.cuEventCreate(&sample->start, CU_EVENT_DEFAULT) != CUDA_SUCCESS) return false;
  if (driver.cuEventCreate(&sample->end, CU_EVENT_DEFAULT) != CUDA_SUCCESS) {
    driver.cuEventDestroy_v2(sample->start);
    return false;
  }
  if (driver.cuEventCreate(&sample->before, CU_EVENT_DEFAULT) != CUDA_SUCCESS) sample->before = NULL;
  sample->context = context;
  return true;
}

static void learn_event_cost(const struct sample *sample) {
  float took_ms;
  if (!sample->has_before || driver.cuEventElapsedTime(&took_ms, sample->before, sample->start) != CUDA_SUCCESS) return;
  event_cost_learn((int64_t)((double)took_ms * 1e6));
}

struct sample *sampler_begin(const struct sample_request *request) {
  struct sample *sample = take_sample();
  if (sample == NULL) return NULL;
  uint64_t now = os_now_ns();
  sample->request = *request;
  sample->key = request->cost->key;
  sample->anchor = anchor_current(request->context, request->stream, now);
  sample->ticket = overlap_sampler_join(request->device, sample->anchor, now);
  cost_timing(request->cost, 1);
  reported_use_launched(request->device, request->charged_ns);
  bool begun = have_events(sample, request->context);
  sample->idle = begun && (flight_recorded_on_idle() || driver.cuStreamQuery(request->stream) == CUDA_SUCCESS);
  sample->has_before = begun && !sample->idle && sample->before != NULL && event_cost_is_due() &&
                       driver.cuEventRecord(sample->before, request->stream) == CUDA_SUCCESS;
  sample->submitted_at_ns = os_now_ns();
  if (begun && driver.cuEventRecord(sample->start, request->stream) == CUDA_SUCCESS) return sample;
  sampler_end(sample, request->stream, false);
  return NULL;
}

void sampler_launching(struct sample *sample) {
  sample->launched_at_ns = os_now_ns();
}

void sampler_end(struct sample *sample, CUstream stream, bool launched) {
  bool timed = launched && driver.cuEventRecord(sample->end, stream) == CUDA_SUCCESS;
  sample->ended_at_ns = os_now_ns();
  __atomic_store_n(&sample->state, timed ? SAMPLE_PENDING : SAMPLE_VOID, __ATOMIC_RELEASE);
}

static void release(struct sample *sample) {
  if (sample->ticket.window != 0) overlap_sampler_discard(sample->ticket);
  cost_timing(sample->request.cost, -1);
  reported_use_completed(sample->request.device, sample->request.charged_ns);
  __atomic_store_n(&sample->state, SAMPLE_FREE, __ATOMIC_RELEASE);
}

/* Usual duration of the driver calls around a launch: the median, tracked in small steps. If the calls took much
 * longer, the thread was preempted, and the time between the events is longer than the launch. */
static uint64_t usual_calls_ns;

static void learn_usual_calls(uint64_t took_ns) {
  uint64_t usual = __atomic_load_n(&usual_calls_ns, __ATOMIC_RELAXED);
  uint64_t step = usual / 32 + 1;
  /* The first calls of a program are slow because they initialise the driver, so the median restarts at a much shorter
   * one. */
  bool starts_over = usual == 0 || took_ns < usual / 4;
  usual = starts_over ? took_ns : took_ns > usual ? usual + step : usual - step;
  __atomic_store_n(&usual_calls_ns, usual, __ATOMIC_RELAXED);
}

static bool is_delayed(uint64_t calls_ns) {
  uint64_t usual = __atomic_load_n(&usual_calls_ns, __ATOMIC_RELAXED);
  return usual == 0 || calls_ns > 2 * usual;
}

/*
 * Corrects a sample with the host's clock. On an idle stream the start event completes before the launch is submitted,
 * so the gap between them is host time and is subtracted. The end of the launch also shows how much other containers
 * delayed it.
 */
static uint64_t correct_by_host_clock(struct sample *sample, uint64_t took_ns) {
  const struct sample_request *request = &sample->request;
  int64_t start, end = 0;
  if (!anchor_time(sample->anchor, sample->start, &start) || !anchor_time(sample->anchor, sample->end, &end))
    return took_ns;
  int64_t started_at = anchor_host_time(start, sample->submitted_at_ns);
  int64_t gap = (int64_t)sample->launched_at_ns - started_at;
  int64_t most = (int64_t)(sample->launched_at_ns - sample->submitted_at_ns);
  if (gap > most) gap = most;
  /* After a preemption, or behind other work, the gap is unreliable. A sample that is too long does less harm than one
   * that is too short. */
  if (gap > 0 && sample->idle && !is_delayed((uint64_t)gap)) {
    if ((uint64_t)gap >= took_ns) gap = (int64_t)took_ns - 1;
    took_ns -= (uint64_t)gap;
    start += gap;
  }
  if (sample->ticket.window != 0) {
    overlap_sampler_add(sample->ticket, &(struct overlap_launch){
                                            .start_ns = start,
                                            .end_ns = end,
                                            .cost_ns = request->charged_ns,
                                            .stream = (uint64_t)request->stream,
                                            .queued = !sample->idle,
                                        });
    sample->ticket.window = 0;
  }
  int64_t late = started_at + (end - start) - (int64_t)request->alone_until_ns;
  if (request->alone_until_ns != 0 && !request->guessed)
    bucket_observe(request->device, late > 0 ? (uint64_t)late : 0, took_ns);
  return took_ns;
}

/* Charges or refunds the difference between an assumed cost and the measured duration. */
static void settle_guess(const struct sample *sample, uint64_t took_ns, bool at_least) {
  const struct sample_request *request = &sample->request;
  if (at_least && took_ns <= request->charged_ns) return;
  int64_t more = (int64_t)sampler_overlapped(request->device, took_ns) -
                 (int64_t)sampler_overlapped(request->device, request->charged_ns);
  if (!flight_settles(request->device, sample->launched_at_ns, more)) charge_adjust(request->device, more);
}

static void apply(struct sample *sample, float took_ms, uint64_t now) {
  const struct sample_request *request = &sample->request;
  struct vgpu_device_usage *usage = &control.ledger.usage->devices[request->device];
  learn_event_cost(sample);
  int64_t without_event_ns = (int64_t)((double)took_ms * 1e6) - event_cost_ns();
  uint64_t took_ns = correct_by_host_clock(sample, without_event_ns > 0 ? (uint64_t)without_event_ns : 1);
  usage_count(&usage->samples, 1);
  usage_count(&usage->sampled_ns, took_ns);
  uint64_t calls_ns = sample->ended_at_ns - sample->submitted_at_ns;
  const struct timing timing = {
      .sample_ns = took_ns,
      .others_ppm = others_ppm(request->device),
      .queued = !sample->idle,
      .disturbed = is_delayed(calls_ns) && calls_ns > took_ns / DISTURBED_PART,
  };
  learn_usual_calls(calls_ns);
  cost_learn(request->cost, sample->key, &timing, now);
  if (request->guessed) {
    /* Lower bound: the measured time minus the time that the driver calls took. */
    uint64_t surely_ns = took_ns > calls_ns ? took_ns - calls_ns : 0;
    settle_guess(sample, timing.disturbed ? surely_ns : took_ns, timing.disturbed);
  }
  control_note(VGPU_TEST_EVENTS_WORK);
}

/* The driver's time stamps may be wrong: a launch takes some time, and no more than has passed since its submission. */
static bool is_possible(const struct sample *sample, float took_ms) {
  return took_ms > 0 && (double)took_ms * 1e6 <= (double)(os_now_ns() - sample->submitted_at_ns) + STAMP_ERROR_NS;
}

/* Applies a sample if the GPU has finished its launch; false if it has not. */
static bool apply_if_finished(struct sample *sample, uint64_t now) {
  float took_ms;
  enum sample_state state = __atomic_load_n(&sample->state, __ATOMIC_ACQUIRE);
  if (state == SAMPLE_FREE || state == SAMPLE_BUSY) return true;
  if (state == SAMPLE_PENDING) {
    CUresult result = driver.cuEventElapsedTime(&took_ms, sample->start, sample->end);
    if (result == CUDA_ERROR_NOT_READY && now - sample->submitted_at_ns < LOST_NS) return false;
    if (result == CUDA_SUCCESS && is_possible(sample, took_ms)) apply(sample, took_ms, now);
  }
  release(sample);
  return true;
}

static bool is_free(uint32_t number) {
  return __atomic_load_n(&samples[number % SAMPLES].state, __ATOMIC_ACQUIRE) == SAMPLE_FREE;
}

void sampler_collect(void) {
  if (none_in_use() || !lock_try(&reading)) return;
  uint64_t now = os_now_ns();
  unsigned waiting = 0;
  uint32_t end = __atomic_load_n(&next_sample, __ATOMIC_ACQUIRE);
  __atomic_store_n(&next_at_collection, end, __ATOMIC_RELAXED);
  uint32_t first = end - first_in_use > SAMPLES ? end - SAMPLES : first_in_use;
  for (uint32_t i = first; i != end && waiting < MOST_UNFINISHED; i++)
    if (!apply_if_finished(&samples[i % SAMPLES], now)) waiting++;
  while (first != end && is_free(first))
    first++;
  __atomic_store_n(&first_in_use, first, __ATOMIC_RELAXED);
  lock_release(&reading);
}

void sampler_collect_if_due(void) {
  uint32_t begun =
      __atomic_load_n(&next_sample, __ATOMIC_RELAXED) - __atomic_load_n(&next_at_collection, __ATOMIC_RELAXED);
  if (!overlap_sampler_is_on() || begun >= MOST_PENDING) sampler_collect();
}

bool sampler_times_every_launch(void) {
  return overlap_sampler_is_on();
}

void sampler_note_launch(uint32_t device, CUstream stream) {
  overlap_sampler_note_launch(device, stream,
                              __atomic_load_n(&control.ledger.usage->devices[device].charged_ns, __ATOMIC_RELAXED),
                              os_now_ns());
}

uint64_t sampler_overlapped(uint32_t device, uint64_t cost_ns) {
  return cost_ns * overlap_sampler_factor_ppm(device) / VGPU_PPM_WHOLE;
}

void sampler_drop_context(CUcontext context) {
  lock_take(&reading);
  for (uint32_t i = 0; i < SAMPLES; i++) {
    struct sample *sample = &samples[i];
    enum sample_state state = __atomic_load_n(&sample->state, __ATOMIC_ACQUIRE);
    /* Launching in a context while another thread destroys it is undefined behaviour in CUDA as well. */
    if (sample->context != context || state == SAMPLE_BUSY) continue;
    if (state != SAMPLE_FREE) release(sample);
    destroy_events(sample);
  }
  anchor_drop_context(context);
  lock_release(&reading);
}

static void reset(void) {
  memset(samples, 0, sizeof samples);
  first_in_use = next_sample;
  lock.taken = 0;
  reading.taken = 0;
}
AFTER_FORK(reset)
