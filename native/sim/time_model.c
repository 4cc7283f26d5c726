#include "time_model.h"

#include <string.h>

/* Result of one pass over all channels. */
struct scan {
  bool changed;     /* operations ended */
  bool blocked;     /* channels wait for other channels */
  bool copying;     /* a copy engine is busy */
  uint64_t next_ns; /* time of the next event that needs no action of a process */
  uint32_t ready_count;
  uint16_t ready[SIM_MAX_CHANNELS]; /* channels whose next operation is a runnable kernel */
  uint32_t grants[SIM_MAX_CHANNELS];
};

static uint64_t earlier(uint64_t a, uint64_t b) {
  return a < b ? a : b;
}

static uint64_t later(uint64_t a, uint64_t b) {
  return a > b ? a : b;
}

enum { WHOLE_PPM = 1000000 };

static uint64_t divide_up(uint64_t a, uint64_t b) {
  return (a + b - 1) / b;
}

static uint64_t done_of(const struct sim_channel *channel) {
  return atomic_load_explicit(&channel->done, memory_order_relaxed);
}

static uint64_t submitted_of(const struct sim_channel *channel) {
  return atomic_load_explicit(&channel->submitted, memory_order_acquire);
}

static const struct sim_op *op_at(const struct sim_model *model, uint32_t index, uint64_t place) {
  return &model->rings[index][place % SIM_RING];
}

static uint32_t flags_of(const struct sim_channel *channel) {
  return atomic_load_explicit(&channel->flags, memory_order_relaxed);
}

static bool is_busy(const struct sim_model *model, uint32_t index) {
  return (atomic_load_explicit(&model->busy[index / 64], memory_order_relaxed) >> (index % 64)) & 1;
}

/* The first busy channel at or after `from`; SIM_MAX_CHANNELS: none. */
static uint32_t next_busy(const struct sim_model *model, uint32_t from) {
  for (uint32_t word = from / 64; word < SIM_CHANNEL_WORDS; word++) {
    uint64_t bits = atomic_load_explicit(&model->busy[word], memory_order_relaxed);
    if (word == from / 64) bits &= ~0ull << (from % 64);
    if (bits != 0) return word * 64 + (uint32_t)__builtin_ctzll(bits);
  }
  return SIM_MAX_CHANNELS;
}

#define FOR_EACH_BUSY(model, index)                                                                                    \
  for (uint32_t index = next_busy(model, 0); index < SIM_MAX_CHANNELS; index = next_busy(model, index + 1))

void sim_model_begin(struct sim_model *model, uint32_t index, uint32_t sms, const struct sim_pace *pace,
                     uint64_t now_ns) {
  model->index = index;
  model->sms = sms;
  model->pace = *pace;
  model->speed_ppm = WHOLE_PPM;
  model->now_ns = now_ns;
  model->running = SIM_NO_TENANT;
  sim_usage_begin(&model->usage, now_ns);
}

static void reach(struct sim_event *event, uint64_t ticket, uint64_t now_ns) {
  if (ticket <= atomic_load_explicit(&event->reached, memory_order_relaxed)) return;
  atomic_store_explicit(&event->time_ns, now_ns, memory_order_relaxed);
  atomic_store_explicit(&event->reached, ticket, memory_order_release);
}

void sim_model_abandon(struct sim_model *model, struct sim_event *events, uint32_t tenant) {
  FOR_EACH_BUSY(model, index) {
    struct sim_channel *channel = &model->channels[index];
    if (channel->tenant != tenant) continue;
    uint64_t end = submitted_of(channel);
    for (uint64_t place = done_of(channel); place < end; place++) {
      const struct sim_op *op = op_at(model, index, place);
      if (op->kind == SIM_RECORD) reach(&events[op->event], op->ticket, model->now_ns);
    }
    channel->started = false;
    atomic_store_explicit(&channel->done, end, memory_order_release);
  }
}

void sim_model_fail(struct sim_model *model, struct sim_event *events, uint32_t tenant, uint32_t error,
                    bool neighbours) {
  uint32_t server = model->tenants[tenant].client.server;
  for (uint32_t i = 0; i < SIM_MAX_TENANTS; i++) {
    struct sim_tenant *one = &model->tenants[i];
    if (i != tenant && !(neighbours && server != 0 && one->client.server == server)) continue;
    uint32_t none = 0;
    if (!atomic_load(&one->used)) continue;
    atomic_compare_exchange_strong(&one->error, &none, error);
    sim_model_abandon(model, events, i);
  }
}

static void finish(struct sim_channel *channel, struct scan *scan) {
  channel->started = false;
  atomic_store_explicit(&channel->done, done_of(channel) + 1, memory_order_release);
  scan->changed = true;
}

/* Whether the operation at the head of the channel is older than `order`. */
static bool holds_older(const struct sim_model *model, uint32_t index, uint64_t order) {
  const struct sim_channel *channel = &model->channels[index];
  uint64_t done = done_of(channel);
  return submitted_of(channel) > done && op_at(model, index, done)->order < order;
}

/* The legacy default stream and the blocking streams of its context wait for each other. */
static bool in_order(const struct sim_model *model, const struct sim_channel *channel, uint64_t order) {
  uint32_t flags = flags_of(channel);
  if (flags & SIM_CHANNEL_BLOCKING) return !holds_older(model, model->tenants[channel->tenant].legacy, order);
  if (flags & SIM_CHANNEL_LEGACY) {
    FOR_EACH_BUSY(model, index) {
      const struct sim_channel *other = &model->channels[index];
      if (other->tenant == channel->tenant && (flags_of(other) & SIM_CHANNEL_BLOCKING) &&
          holds_older(model, index, order))
        return false;
    }
  }
  return true;
}

/* Marks the channel as idle. False: an operation was pushed meanwhile. */
static bool retire(struct sim_model *model, uint32_t index) {
  struct sim_channel *channel = &model->channels[index];
  uint64_t bit = 1ull << (index % 64);
  atomic_fetch_and_explicit(&model->busy[index / 64], ~bit, memory_order_relaxed);
  atomic_thread_fence(memory_order_seq_cst);
  if (submitted_of(channel) != done_of(channel)) {
    atomic_fetch_or_explicit(&model->busy[index / 64], bit, memory_order_relaxed);
    return false;
  }
  if (flags_of(channel) & SIM_CHANNEL_CLOSED) atomic_store_explicit(&channel->flags, 0, memory_order_release);
  return true;
}

static bool needs_sms(const struct sim_op *op) {
  return op->kind == SIM_KERNEL || (op->kind == SIM_RECORD && op->work > 0);
}

static uint32_t width_of(const struct sim_op *op) {
  return op->kind == SIM_KERNEL ? op->width : 1;
}

/* Starts the kernel at the head of a channel if necessary. True: the kernel has ended. */
static bool kernel_has_ended(struct sim_model *model, struct sim_channel *channel, const struct sim_op *op) {
  if (!channel->started) {
    channel->started = true;
    channel->start = ++model->starts;
    channel->left = op->work;
  }
  return channel->left == 0;
}

static bool copy_has_ended(struct sim_model *model, struct sim_channel *channel, const struct sim_op *op,
                           struct scan *scan) {
  if (!channel->started) {
    channel->started = true;
    channel->left = later(model->now_ns, model->engine_free_ns[op->engine]) + op->work;
    model->engine_free_ns[op->engine] = channel->left;
  }
  if (channel->left <= model->now_ns) return true;
  scan->next_ns = earlier(scan->next_ns, channel->left);
  scan->copying = true;
  return false;
}

/* When an event reached a ticket. That may be later than the time of this model if another GPU recorded it. */
static uint64_t reached_ns(const struct sim_event *event, uint64_t ticket) {
  if (atomic_load_explicit(&event->reached, memory_order_acquire) < ticket) return SIM_NEVER;
  return atomic_load_explicit(&event->time_ns, memory_order_relaxed);
}

/* Completes an operation that takes no GPU time, if its condition holds. */
static bool try_complete(const struct sim_model *model, struct sim_event *events, struct sim_channel *channel,
                         const struct sim_op *op) {
  uint64_t place = done_of(channel) + 1;
  switch (op->kind) {
  case SIM_RECORD:
    reach(&events[op->event], op->ticket, model->now_ns);
    return true;
  case SIM_WAIT:
    return reached_ns(&events[op->event], op->ticket) <= model->now_ns;
  case SIM_JOIN:
    return done_of(&model->channels[op->channel]) >= op->ticket;
  case SIM_HOST:
    atomic_store_explicit(&channel->host_turn, place, memory_order_release);
    return atomic_load_explicit(&channel->host_done, memory_order_acquire) >= place;
  default:
    return true;
  }
}

/* Completes all finished operations of a channel and records what the next one waits for. */
static void advance_channel(struct sim_model *model, struct sim_event *events, uint32_t index, struct scan *scan) {
  struct sim_channel *channel = &model->channels[index];
  for (;;) {
    uint64_t done = done_of(channel);
    if (submitted_of(channel) == done) {
      if (retire(model, index)) return;
      continue;
    }
    const struct sim_op *op = op_at(model, index, done);
    if (op->submitted_ns > model->now_ns) {
      scan->next_ns = earlier(scan->next_ns, op->submitted_ns);
      return;
    }
    if (!channel->started && !in_order(model, channel, op->order)) {
      scan->blocked = true;
      return;
    }
    if (needs_sms(op)) {
      if (!kernel_has_ended(model, channel, op)) {
        scan->ready[scan->ready_count++] = (uint16_t)index;
        return;
      }
      if (op->kind == SIM_RECORD) {
        reach(&events[op->event], op->ticket, model->now_ns);
      } else if (op->flags & SIM_FAULT) {
        sim_model_fail(model, events, channel->tenant, (uint32_t)op->ticket, true);
        scan->changed = scan->blocked = true; /* the tenant's other channels changed as well */
        return;
      }
    } else if (op->kind == SIM_COPY) {
      if (!copy_has_ended(model, channel, op, scan)) return;
    } else if (!try_complete(model, events, channel, op)) {
      if (op->kind == SIM_WAIT) scan->next_ns = earlier(scan->next_ns, reached_ns(&events[op->event], op->ticket));
      scan->blocked = true;
      return;
    }
    finish(channel, scan);
  }
}

/* Completes everything that has finished at model->now_ns. */
static void complete_finished(struct sim_model *model, struct sim_event *events, struct scan *scan) {
  do {
    scan->changed = scan->blocked = scan->copying = false;
    scan->next_ns = SIM_NEVER;
    scan->ready_count = 0;
    FOR_EACH_BUSY(model, index) advance_channel(model, events, index, scan);
  } while (scan->changed && scan->blocked);
}

/* Whether two tenants have the SMs at the same time. */
static bool run_together(const struct sim_model *model, int32_t a, int32_t b) {
  if (a == b) return true;
  if (a == SIM_NO_TENANT || b == SIM_NO_TENANT) return false;
  const struct sim_client *one = &model->tenants[a].client, *other = &model->tenants[b].client;
  return one->server != 0 && one->server == other->server && one->together && other->together;
}

static int32_t tenant_of(const struct sim_model *model, const struct scan *scan, uint32_t at) {
  return (int32_t)model->channels[scan->ready[at]].tenant;
}

/* Selects the tenant that runs now. Sets the end of its time slice if other tenants wait. */
static void select_tenant(struct sim_model *model, struct scan *scan) {
  int32_t next = SIM_NO_TENANT, first = SIM_NO_TENANT;
  bool stays = false;
  for (uint32_t i = 0; i < scan->ready_count; i++) {
    int32_t tenant = tenant_of(model, scan, i);
    if (run_together(model, tenant, model->running))
      stays = true;
    else {
      if (first == SIM_NO_TENANT || tenant < first) first = tenant;
      if (tenant > model->running && (next == SIM_NO_TENANT || tenant < next)) next = tenant;
    }
  }
  if (next == SIM_NO_TENANT) next = first;
  bool expired = model->now_ns >= model->slice_end_ns;
  if (next != SIM_NO_TENANT && (!stays || expired)) {
    bool changes = model->running != SIM_NO_TENANT;
    model->running = next;
    uint64_t takes = stays ? model->pace.switch_ns : model->pace.idle_switch_ns;
    model->switched_ns = model->now_ns + (changes ? takes : 0);
    model->slice_end_ns = model->switched_ns + model->pace.slice_ns;
    model->switches += changes;
  } else if (stays && expired) {
    /* No other tenant waits: time slices follow each other without a gap, however rarely the model is advanced. */
    uint64_t slice_ns = model->pace.slice_ns;
    model->slice_end_ns += divide_up(model->now_ns - model->slice_end_ns + 1, slice_ns) * slice_ns;
  }
  if (next != SIM_NO_TENANT) scan->next_ns = earlier(scan->next_ns, model->slice_end_ns);
}

/* The time that so much work takes on so many SMs at the present clock. */
static uint64_t time_for(const struct sim_model *model, uint64_t work, uint32_t sms) {
  uint64_t ns = divide_up(work, sms);
  return model->speed_ppm == WHOLE_PPM ? ns : (uint64_t)((double)ns * WHOLE_PPM / (double)model->speed_ppm) + 1;
}

static uint64_t work_in(const struct sim_model *model, uint64_t duration, uint32_t sms) {
  uint64_t work = duration * sms;
  return model->speed_ppm == WHOLE_PPM ? work : (uint64_t)((double)work * (double)model->speed_ppm / WHOLE_PPM);
}

static bool goes_before(const struct sim_model *model, const struct sim_channel *a, const struct sim_channel *b) {
  uint32_t first = model->tenants[a->tenant].client.priority, second = model->tenants[b->tenant].client.priority;
  if (first != second) return first < second;
  return a->priority != b->priority ? a->priority < b->priority : a->start < b->start;
}

/* How many of the free SMs a tenant may get, after the first `running` kernels got theirs. */
static uint32_t room_of(const struct sim_model *model, const struct scan *scan, uint32_t running, uint32_t tenant,
                        uint32_t free) {
  const struct sim_client *client = &model->tenants[tenant].client;
  if (client->server == 0) return free;
  uint32_t room = client->most_sms;
  for (uint32_t i = 0; i < running; i++)
    if (model->channels[scan->ready[i]].tenant == tenant) room -= scan->grants[i];
  return room < free ? room : free;
}

/* Leaves in scan->ready the kernels that run, and in scan->grants the number of SMs of each. */
static void assign_sms(struct sim_model *model, struct scan *scan) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < scan->ready_count; i++) {
    if (!run_together(model, tenant_of(model, scan, i), model->running)) continue;
    uint16_t index = scan->ready[i];
    uint32_t at = count++;
    for (; at > 0 && goes_before(model, &model->channels[index], &model->channels[scan->ready[at - 1]]); at--)
      scan->ready[at] = scan->ready[at - 1];
    scan->ready[at] = index;
  }
  uint32_t free = model->sms;
  uint32_t running = 0;
  for (uint32_t at = 0; at < count && free > 0; at++) {
    struct sim_channel *channel = &model->channels[scan->ready[at]];
    const struct sim_op *op = op_at(model, scan->ready[at], done_of(channel));
    uint32_t room = room_of(model, scan, running, channel->tenant, free);
    if (room == 0) continue;
    if ((op->flags & SIM_GANG) && width_of(op) > room) break;
    uint32_t sms = width_of(op) < room ? width_of(op) : room;
    free -= sms;
    scan->ready[running] = scan->ready[at];
    scan->grants[running++] = sms;
    scan->next_ns =
        earlier(scan->next_ns, later(model->now_ns, model->switched_ns) + time_for(model, channel->left, sms));
  }
  scan->ready_count = running;
  if (model->now_ns < model->switched_ns) scan->next_ns = earlier(scan->next_ns, model->switched_ns);
}

/* The first tenant after `last` that has kernels on the GPU; SIM_MAX_TENANTS: none. */
static uint32_t next_running(const struct sim_model *model, const struct scan *scan, int32_t last) {
  uint32_t next = SIM_MAX_TENANTS;
  for (uint32_t i = 0; i < scan->ready_count; i++) {
    int32_t tenant = tenant_of(model, scan, i);
    if (tenant > last && (uint32_t)tenant < next) next = (uint32_t)tenant;
  }
  return next;
}

#define FOR_EACH_RUNNING(model, scan, tenant)                                                                          \
  for (uint32_t tenant = next_running(model, scan, -1); tenant < SIM_MAX_TENANTS;                                      \
       tenant = next_running(model, scan, (int32_t)tenant))

/* Lets time pass until `to_ns`. No operation begins or ends before that. */
static void let_time_pass(struct sim_model *model, struct scan *scan, uint64_t to_ns) {
  uint64_t duration = to_ns - model->now_ns;
  bool works = scan->ready_count > 0;
  if (works && model->now_ns >= model->switched_ns) {
    for (uint32_t i = 0; i < scan->ready_count; i++) {
      struct sim_channel *channel = &model->channels[scan->ready[i]];
      channel->left -= earlier(channel->left, work_in(model, duration, scan->grants[i]));
    }
    FOR_EACH_RUNNING(model, scan, tenant) model->tenants[tenant].busy_ns += duration;
  }
  model->now_ns = to_ns;
  int process = works ? (int)model->tenants[tenant_of(model, scan, 0)].process : -1;
  FOR_EACH_RUNNING(model, scan, tenant) {
    int other = (int)model->tenants[tenant].process;
    if (other != process) sim_usage_join(&model->usage, duration, other);
  }
  uint64_t window = model->usage.window;
  sim_usage_pass(&model->usage, to_ns, duration, process, scan->copying);
  if (model->pace.boost_percent > 0 && model->usage.window != window) {
    uint64_t idle_percent = 100 - model->usage.busy[window % SIM_WINDOWS];
    model->speed_ppm = WHOLE_PPM + WHOLE_PPM / 10000 * model->pace.boost_percent * idle_percent;
  }
}

void sim_model_advance(struct sim_model *model, struct sim_event *events, uint64_t now_ns) {
  struct scan scan;
  if (now_ns < model->now_ns) now_ns = model->now_ns;
  for (;;) {
    complete_finished(model, events, &scan);
    if (model->now_ns >= now_ns) return;
    if (scan.ready_count > 0) {
      select_tenant(model, &scan);
      assign_sms(model, &scan);
    }
    uint64_t to = earlier(earlier(scan.next_ns, sim_usage_window_end(&model->usage)), now_ns);
    let_time_pass(model, &scan, to);
  }
}

static uint64_t earliest(const struct sim_model *model, const struct sim_event *events, uint32_t index, uint64_t ticket,
                         int depth) {
  const struct sim_channel *channel = &model->channels[index];
  uint64_t time = model->now_ns, done = done_of(channel), end = submitted_of(channel);
  if (ticket < end) end = ticket;
  for (uint64_t place = done; place < end; place++) {
    const struct sim_op *op = op_at(model, index, place);
    bool started = place == done && channel->started;
    time = later(time, op->submitted_ns);
    uint64_t until = time;
    if (needs_sms(op)) {
      uint32_t most = room_of(model, NULL, 0, channel->tenant, model->sms);
      uint32_t width = width_of(op) < most ? width_of(op) : most;
      time += time_for(model, started ? channel->left : op->work, width);
    } else if (op->kind == SIM_COPY) {
      time = started ? later(time, channel->left) : time + op->work;
    } else if (op->kind == SIM_JOIN && depth > 0) {
      until = earliest(model, events, op->channel, op->ticket, depth - 1);
    } else if (op->kind == SIM_WAIT) {
      const struct sim_event *event = &events[op->event];
      if (atomic_load_explicit(&event->reached, memory_order_acquire) >= op->ticket) continue;
      if (event->gpu != model->index) return SIM_NEVER;
      if (depth > 0 && op->ticket == atomic_load(&event->recorded))
        until = earliest(model, events, event->channel, event->place, depth - 1);
    } else if (op->kind == SIM_HOST) {
      if (atomic_load_explicit(&channel->host_done, memory_order_acquire) <= place) return SIM_NEVER;
    }
    if (until == SIM_NEVER) return SIM_NEVER;
    time = later(time, until);
  }
  return time;
}

uint64_t sim_model_earliest(const struct sim_model *model, const struct sim_event *events, uint32_t channel,
                            uint64_t ticket) {
  return earliest(model, events, channel, ticket, 4);
}

int sim_model_open_tenant(struct sim_model *model, uint32_t process) {
  for (uint32_t i = 0; i < SIM_MAX_TENANTS; i++) {
    struct sim_tenant *tenant = &model->tenants[i];
    if (atomic_load(&tenant->used)) continue;
    memset(tenant, 0, sizeof *tenant);
    tenant->process = process;
    atomic_store(&tenant->used, 1);
    int legacy = sim_model_open_channel(model, i, SIM_CHANNEL_LEGACY, 0);
    if (legacy < 0) {
      atomic_store(&tenant->used, 0);
      return -1;
    }
    tenant->legacy = (uint32_t)legacy;
    atomic_fetch_add(&model->tenant_count, 1);
    return (int)i;
  }
  return -1;
}

void sim_model_join(struct sim_model *model, uint32_t tenant, const struct sim_client *client) {
  model->tenants[tenant].client = *client;
}

bool sim_model_works(const struct sim_model *model, uint32_t tenant) {
  FOR_EACH_BUSY(model, index) {
    const struct sim_channel *channel = &model->channels[index];
    if (channel->tenant == tenant && submitted_of(channel) != done_of(channel)) return true;
  }
  return false;
}

int sim_model_open_channel(struct sim_model *model, uint32_t tenant, uint32_t flags, int32_t priority) {
  for (uint32_t i = 0; i < SIM_MAX_CHANNELS; i++) {
    struct sim_channel *channel = &model->channels[i];
    if (flags_of(channel) != 0 || is_busy(model, i)) continue;
    /* The counters continue, so tickets from the channel's earlier use stay complete. */
    channel->tenant = tenant;
    channel->priority = priority;
    channel->started = false;
    atomic_store_explicit(&channel->flags, flags | SIM_CHANNEL_USED, memory_order_release);
    return (int)i;
  }
  return -1;
}

void sim_model_close_channel(struct sim_model *model, uint32_t index) {
  struct sim_channel *channel = &model->channels[index];
  atomic_fetch_or(&channel->flags, SIM_CHANNEL_CLOSED);
  if (!is_busy(model, index)) atomic_store_explicit(&channel->flags, 0, memory_order_release);
}

void sim_model_close_tenant(struct sim_model *model, struct sim_event *events, uint32_t tenant) {
  sim_model_abandon(model, events, tenant);
  for (uint32_t i = 0; i < SIM_MAX_CHANNELS; i++) {
    struct sim_channel *channel = &model->channels[i];
    if (flags_of(channel) == 0 || channel->tenant != tenant) continue;
    atomic_fetch_and(&model->busy[i / 64], ~(1ull << (i % 64)));
    atomic_store_explicit(&channel->flags, 0, memory_order_release);
  }
  if (model->running == (int32_t)tenant) model->slice_end_ns = model->now_ns;
  atomic_store(&model->tenants[tenant].used, 0);
  atomic_fetch_sub(&model->tenant_count, 1);
}
