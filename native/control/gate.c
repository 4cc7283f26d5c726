#include "gate.h"
#include "activity.h"
#include "bucket.h"
#include "charge.h"
#include "devices.h"
#include "driver.h"
#include "flight.h"
#include "fork.h"
#include "os.h"
#include "others.h"
#include "pauses.h"
#include "peers.h"
#include "turn.h"
#include "yield.h"

/* Upper bound of the credit that a thread takes from the bucket at once. A thread starts with less and doubles the
 * amount. */
#define MOST_CREDIT_NS 500000ull
/* Maximum time that a launch of unknown cost waits for the sample of an earlier launch. */
#define UNKNOWN_WAIT_NS 100000000ull
#define UNKNOWN_PENDING 4u
/* The same for a launch while others of unknown cost run, and after how long one of them is not a short one. */
#define UNKNOWN_MOST_NS 2000000000ull
#define UNKNOWN_YOUNG_NS 1000000ull
/* It is asked for often for this long. */
#define UNKNOWN_LONG_NS 20000000ull
/* Of earlier launches, so much is submitted and incomplete when another one begins that is longer than the queue. */
#define QUEUE_AHEAD_NS 1000000ull
#define QUEUE_POLL_NS 100000ull
/* Work may wait for the launch itself, so it waits for at most this long. */
#define FULL_WAIT_NS 500000000ull
/* Under a soft limit one launch per interval is timed, to detect load from other containers. */
#define SOFT_SAMPLE_NS 4000000ull

/* What the GPU does at least while it changes between containers all the time. */
#define BESIDE_PPM 750000u

#define NEVER_OPEN (-1)

__thread struct gate_thread gate_thread;
static uint64_t soft_sampled_at;

void gate_refresh(void) {
  const struct vgpu_limits_header *header = &control.limits->header;
  uint32_t sequence = __atomic_load_n(&header->sequence, __ATOMIC_ACQUIRE);
  uint32_t limited = 0;
  enum activity activity = ACTIVITY_NONE;
  for (uint32_t i = 0; i < header->device_count; i++) {
    struct vgpu_device_live live;
    limits_read(control.limits, i, &live);
    if (!limits_share_is_limited(&live)) continue;
    limited |= 1u << i;
    if (live.priority == VGPU_PRIORITY_HIGH)
      activity = ACTIVITY_OF_LAUNCHES;
    else if (activity != ACTIVITY_OF_LAUNCHES && limits_share_is_lent(&live))
      activity = ACTIVITY_OF_TOKENS;
    else if (activity == ACTIVITY_NONE && live.high_count > 0)
      activity = ACTIVITY_OF_TURNS;
  }
  atomic_store_explicit(&gate.open_at, NEVER_OPEN, memory_order_relaxed);
  atomic_store_explicit(&gate.limited, limited, memory_order_relaxed);
  atomic_store_explicit(&gate.device, limited != 0 ? devices_only() : GATE_OPEN, memory_order_relaxed);
  atomic_store_explicit(&gate.sequence, sequence, memory_order_release);
  atomic_store_explicit(&gate.sequence_at, &header->sequence, memory_order_release);
  if (limited == 0) atomic_store_explicit(&gate.open_at, sequence, memory_order_release);
  peers_refresh();
  activity_set(activity);
  turn_refresh();
  if (gate_has_news()) control_notice();
  control_note_work();
}

bool gate_is_open(void) {
  if (!control_enforces()) return true;
  if (gate_is_stale()) gate_refresh();
  return gate_is_off();
}

static bool is_limited(int device) {
  return device >= 0 && (atomic_load_explicit(&gate.limited, memory_order_relaxed) >> device & 1) != 0;
}

static bool has_several_devices(void) {
  return devices_only() == DEVICE_UNLISTED;
}

bool gate_charge_stream(uint64_t key, CUstream stream) {
  if (!has_several_devices() || capture_covers(stream)) return false;
  int device = devices_of_stream(stream);
  return !is_limited(device) || gate_charge_credit_on(device, launch_key_on(key, device));
}

static void count_launches(uint32_t device) {
  usage_count(&control.ledger.usage->devices[device].launches, gate_thread.launches[device]);
  gate_thread.launches[device] = 0;
}

/* Others do not give way to the slice, nor it to them, and it gets no more than its share. Only then an event more is
 * worth what it costs: it can end a time slice in the middle of a request. */
static bool is_plain(uint32_t device) {
  struct vgpu_device_live live;
  limits_read(control.limits, device, &live);
  return live.priority == VGPU_PRIORITY_NORMAL && live.soft_limit <= live.share;
}

/* What else may have run while the launches of this slice did. Beside others that are busy, a GPU gives each the same
 * part of the time that switches leave. */
static struct flight_beside beside(uint32_t device) {
  struct flight_beside beside = {VGPU_PPM_WHOLE, turn_is_undisturbed(device)};
  struct vgpu_device_live live;
  limits_read(control.limits, device, &live);
  uint32_t others = beside.in_turn ? 0 : others_ppm(device);
  if (others == 0) return beside;
  /* Without an agent, what the last one said counts. */
  bool alone = turn_is_alone(device) && is_plain(device) &&
               (live.steered_at_ns == 0 || (live.flags & VGPU_LIVE_ALONE) != 0) &&
               usage_launchers(control.ledger.usage, device) <= 1;
  uint32_t most = live.high_count == 0 ? 2 : live.high_count + 1u;
  if (!alone) beside.own_ppm = others < VGPU_PPM_WHOLE ? VGPU_PPM_WHOLE - others : BESIDE_PPM / most;
  return beside;
}

/* Charges what launches took that are complete. */
static void settle(void) {
  uint32_t limited = atomic_load_explicit(&gate.limited, memory_order_relaxed);
  for (uint32_t device = 0; limited >> device != 0; device++)
    if ((limited >> device & 1) != 0) charge_adjust(device, flight_collect(device, beside(device)));
}

static void collect(void) {
  sampler_collect();
  settle();
}

/* Other containers wait for what this one has in the GPU's queue, and so does a new limit. */
static void wait_for_room(uint32_t device, uint64_t gpu_ns) {
  uint64_t now = os_now_ns(), until = now + FULL_WAIT_NS, waited = 0;
  for (;;) {
    uint64_t room = flight_room_ns(device), most = gpu_ns + QUEUE_AHEAD_NS > room ? gpu_ns + QUEUE_AHEAD_NS : room;
    uint64_t queued = flight_incomplete_ns(device, beside(device).own_ppm == VGPU_PPM_WHOLE);
    bool fits = queued == 0 || (queued <= most && queued + gpu_ns <= most) || now >= until;
    if (!fits || waited > 0) flight_part(device, waited);
    if (fits) return;
    collect();
    now = os_now_ns();
    turn_keep(device, 0);
    if (flight_incomplete_ns(device, true) != 0) os_sleep_until(now + QUEUE_POLL_NS);
    collect();
    waited = os_now_ns() - now;
    now += waited;
  }
}

/* A launch of unknown cost may take any time, and so may those that follow: while one runs, the processes of the slice
 * launch no other. The wait is bounded, because the launch may itself wait for this one (stream dependencies). */
static void wait_for_unknown(uint32_t device) {
  uint64_t from = os_now_ns(), now = from, pause = 20000;
  for (;;) {
    struct flight_unknown own = flight_unknown(device);
    bool waits = own.count >= UNKNOWN_PENDING || (own.count > 0 && now - own.since_ns > UNKNOWN_YOUNG_NS) ||
                 usage_unknown_runs(control.ledger.usage, device, control.ledger.slot, now);
    if (!waits || now - from >= UNKNOWN_MOST_NS) return;
    flight_pause(device);
    collect();
    turn_keep(device, 0);
    usage_reclaim_rarely(control.ledger.usage, &control.self);
    os_sleep_until(now + pause);
    if (pause < (now - from < UNKNOWN_LONG_NS ? UNKNOWN_YOUNG_NS / 10 : UNKNOWN_YOUNG_NS)) pause *= 2;
    now = os_now_ns();
  }
}

static void charge(uint32_t device, CUstream stream, uint64_t cost_ns, bool unknown) {
  int64_t *credit = &gate_thread.credit_ns[device];
  uint64_t take = 0, gpu_ns = 0;
  gate_thread.launches[device]++;
  if (*credit < (int64_t)cost_ns) {
    uint64_t batch = gate_thread.batch_ns * 2;
    if (batch > MOST_CREDIT_NS) batch = MOST_CREDIT_NS;
    if (batch < cost_ns) batch = cost_ns;
    gate_thread.batch_ns = batch;
    uint64_t missing = cost_ns - (uint64_t)(*credit > 0 ? *credit : 0);
    take = missing > batch ? missing : batch;
    gpu_ns = sampler_overlapped(device, take);
    count_launches(device);
    pauses_end();
    settle();
    wait_for_unknown(device);
    bucket_take(device, gpu_ns, collect);
    if (is_plain(device)) wait_for_room(device, gpu_ns);
    uint64_t waits_from = os_now_ns();
    turn_take(device, gpu_ns, unknown, collect);
    bucket_held_up(device, os_now_ns() - waits_from);
    if (yield_to_others(device, stream, gpu_ns, collect) > 0) bucket_resume(device, gpu_ns);
    if (activity_is_of(ACTIVITY_OF_TOKENS) && yield_is_within_share(device)) activity_launch(stream, gpu_ns);
  }
  flight_add(device, stream, gpu_ns, unknown, is_plain(device));
  *credit += (int64_t)take - (int64_t)cost_ns;
}

/*
 * The first launches of a kernel are charged an assumed cost, and long kernels could fill the GPU's queue before the
 * first sample is known. A launch therefore waits for the sample. The wait is bounded, because the launch that is
 * sampled may itself wait for this launch (stream dependencies).
 */
static void wait_until_known(uint32_t device, const struct cost *cost) {
  uint64_t now = os_now_ns();
  uint64_t until = now + UNKNOWN_WAIT_NS;
  uint64_t pause = 20000;
  while (__atomic_load_n(&cost->pending, __ATOMIC_RELAXED) >= UNKNOWN_PENDING && now < until) {
    flight_pause(device);
    collect();
    if (cost_is_known(cost)) return;
    os_sleep_until(now + pause);
    if (pause < UNKNOWN_YOUNG_NS / 10) pause *= 2;
    now = os_now_ns();
  }
}

static bool soft_sample_is_due(uint32_t device) {
  uint64_t now = os_now_ns();
  if (now - __atomic_load_n(&soft_sampled_at, __ATOMIC_RELAXED) < SOFT_SAMPLE_NS || !bucket_is_soft(device))
    return false;
  __atomic_store_n(&soft_sampled_at, now, __ATOMIC_RELAXED);
  return true;
}

static uint64_t alone_until(uint32_t device) {
  uint64_t until = bucket_alone_until(device);
  int64_t unused = gate_thread.credit_ns[device];
  return unused > 0 && (uint64_t)unused < until ? until - (uint64_t)unused : until;
}

/* Events belong to a context. The context of the stream may differ from the current context of the thread. */
static struct sample *begin_sample(struct sample_request *request) {
  CUcontext current = NULL;
  request->context = devices_stream_context(request->stream);
  driver.cuCtxGetCurrent(&current);
  if (request->context == current) return sampler_begin(request);
  if (driver.cuCtxPushCurrent_v2(request->context) != CUDA_SUCCESS) return NULL;
  struct sample *sample = sampler_begin(request);
  driver.cuCtxPopCurrent_v2(&current);
  return sample;
}

/* False: nothing is left to do, because the device is not limited or the tokens are already taken. */
static bool needs_tokens(struct launch *launch, int device) {
  if (!is_limited(device)) return false;
  if (!has_several_devices()) return true;
  launch->key = launch_key_on(launch->key, device);
  return !gate_charge_credit_on(device, launch->key);
}

void gate_enter(struct launch *launch) {
  bool captured = capture_covers(launch->stream);
  gate_enter_on(launch, captured ? DEVICE_UNLISTED : devices_of_stream(launch->stream));
}

/* A launch that takes the slow path only to be noted as the first one. */
static bool only_noted(int device, uint64_t key) {
  return atomic_load_explicit(&gate.slow_path_reasons, memory_order_relaxed) == 1 && flight_is_over() &&
         gate_take_credit(device, key);
}

void gate_enter_on(struct launch *launch, int on) {
  launch->sample = NULL;
  launch->device = DEVICE_UNLISTED;
  if (!needs_tokens(launch, on)) return;
  launch->device = on;
  uint32_t device = (uint32_t)on;
  flight_enter(device, &gate_thread.credit_ns[device]);
  int64_t credit = gate_thread.credit_ns[device];
  if (only_noted(on, launch->key)) {
    launch->charged_ns = (uint64_t)(credit - gate_thread.credit_ns[device]);
    gate_thread.credit_ns[device] = credit;
    flight_add(device, launch->stream, 0, false, is_plain(device));
    gate_thread.credit_ns[device] = credit - (int64_t)launch->charged_ns;
    return;
  }
  sampler_note_launch(device, launch->stream);
  sampler_collect_if_due();
  struct cost *cost = cost_make(launch->key);
  if (!cost_is_known(cost)) wait_until_known(device, cost);
  bool known = cost_is_known(cost);
  uint64_t cost_ns = __atomic_load_n(&cost->cost_ns, __ATOMIC_RELAXED);
  launch->charged_ns = cost_ns != 0 ? cost_ns : cost_guess();
  if (!known) usage_count(&control.ledger.usage->devices[device].unknown_launches, 1);
  charge(device, launch->stream, launch->charged_ns, !known);
  if (activity_is_of(ACTIVITY_OF_LAUNCHES)) activity_launch(launch->stream, launch->charged_ns);
  uint32_t countdown = __atomic_load_n(&cost->countdown, __ATOMIC_RELAXED);
  bool soft = soft_sample_is_due(device);
  if (known && countdown != 0 && !soft && !sampler_times_every_launch()) {
    __atomic_store_n(&cost->countdown, countdown - 1, __ATOMIC_RELAXED);
    return;
  }
  /* A driver call of the library could invalidate a capture on another stream. */
  if (captures != 0) return;
  launch->sample = begin_sample(&(struct sample_request){
      .device = device,
      .stream = launch->stream,
      .cost = cost,
      .charged_ns = launch->charged_ns,
      .guessed = !known,
      .alone_until_ns = soft ? alone_until(device) : 0,
  });
  if (launch->sample != NULL) sampler_launching(launch->sample);
}

CUresult gate_leave(struct launch *launch, CUresult result) {
  bool launched = result == CUDA_SUCCESS;
  if (launch->sample != NULL) sampler_end(launch->sample, launch->stream, launched);
  if (!launched && launch->device >= 0) gate_thread.credit_ns[launch->device] += (int64_t)launch->charged_ns;
  return result;
}

void gate_wait(void) {
  flight_wait();
  uint32_t limited = atomic_load_explicit(&gate.limited, memory_order_relaxed);
  for (uint32_t device = 0; limited >> device != 0; device++) {
    uint64_t surprise_ns = flight_surprise_ns(device);
    if (surprise_ns > 0) turn_keep(device, surprise_ns);
  }
}

void gate_waited(void) {
  uint32_t limited = atomic_load_explicit(&gate.limited, memory_order_relaxed), alone = 0;
  for (uint32_t device = 0; limited >> device != 0; device++)
    if ((limited >> device & 1) != 0 && beside(device).own_ppm == VGPU_PPM_WHOLE) alone |= 1u << device;
  flight_waited(alone);
  for (uint32_t device = 0; limited >> device != 0; device++)
    if (flight_surprise_ns(device) > 0) turn_shorten(device);
}

void gate_drop_context(CUcontext context) {
  collect();
  for (uint32_t device = 0; device < control.limits->header.device_count; device++)
    if (is_limited((int)device)) charge_adjust(device, flight_drop_context(device, context));
  sampler_drop_context(context);
}

static void renew_graph(CUgraphExec exec, void (*renew)(uint64_t key)) {
  uint64_t key = launch_key_of_graph(exec);
  if (!has_several_devices()) renew(key);
  for (uint32_t device = 0; has_several_devices() && device < control.limits->header.device_count; device++)
    renew(launch_key_on(key, (int)device));
}

void gate_forget_graph(CUgraphExec exec) {
  renew_graph(exec, cost_forget);
}

void gate_refresh_graph(CUgraphExec exec) {
  renew_graph(exec, cost_refresh);
}

static void reset(void) {
  gate_thread = (struct gate_thread){.batch_ns = 0};
}
AFTER_FORK(reset)
