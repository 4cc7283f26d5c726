#include "card.h"

#include <string.h>

/* What one look at all channels finds. */
struct scan {
  bool changed;     /* operations ended */
  bool blocked;     /* channels wait for others */
  bool copying;     /* a copy engine works */
  uint64_t next_ns; /* when something comes due by itself */
  uint32_t ready_count;
  uint16_t ready[SIM_MAX_CHANNELS]; /* channels with a kernel that could run */
  uint32_t grants[SIM_MAX_CHANNELS];
};

static uint64_t earlier(uint64_t a, uint64_t b) {
  return a < b ? a : b;
}

static uint64_t later(uint64_t a, uint64_t b) {
  return a > b ? a : b;
}

static uint64_t divide_up(uint64_t a, uint64_t b) {
  return (a + b - 1) / b;
}

static uint64_t done_of(const struct sim_channel *channel) {
  return atomic_load_explicit(&channel->done, memory_order_relaxed);
}

static uint64_t submitted_of(const struct sim_channel *channel) {
  return atomic_load_explicit(&channel->submitted, memory_order_acquire);
}

static const struct sim_op *op_at(const struct sim_card *card, uint32_t index, uint64_t place) {
  return &card->rings[index][place % SIM_RING];
}

static uint32_t flags_of(const struct sim_channel *channel) {
  return atomic_load_explicit(&channel->flags, memory_order_relaxed);
}

static bool is_busy(const struct sim_card *card, uint32_t index) {
  return (atomic_load_explicit(&card->busy[index / 64], memory_order_relaxed) >> (index % 64)) & 1;
}

/* The first busy channel from `from` on; SIM_MAX_CHANNELS: none. */
static uint32_t next_busy(const struct sim_card *card, uint32_t from) {
  for (uint32_t word = from / 64; word < SIM_CHANNEL_WORDS; word++) {
    uint64_t bits = atomic_load_explicit(&card->busy[word], memory_order_relaxed);
    if (word == from / 64) bits &= ~0ull << (from % 64);
    if (bits != 0) return word * 64 + (uint32_t)__builtin_ctzll(bits);
  }
  return SIM_MAX_CHANNELS;
}

#define FOR_EACH_BUSY(card, index)                                                                                     \
  for (uint32_t index = next_busy(card, 0); index < SIM_MAX_CHANNELS; index = next_busy(card, index + 1))

void sim_card_begin(struct sim_card *card, uint32_t index, uint32_t sms, uint64_t slice_ns, uint64_t switch_ns,
                    uint64_t now_ns) {
  card->index = index;
  card->sms = sms;
  card->slice_ns = slice_ns;
  card->switch_ns = switch_ns;
  card->now_ns = now_ns;
  card->running = SIM_NO_TENANT;
  sim_usage_begin(&card->usage, now_ns);
}

static void reach(struct sim_event *event, uint64_t ticket, uint64_t now_ns) {
  if (ticket <= atomic_load_explicit(&event->reached, memory_order_relaxed)) return;
  atomic_store_explicit(&event->time_ns, now_ns, memory_order_relaxed);
  atomic_store_explicit(&event->reached, ticket, memory_order_release);
}

void sim_card_abandon(struct sim_card *card, struct sim_event *events, uint32_t tenant) {
  FOR_EACH_BUSY(card, index) {
    struct sim_channel *channel = &card->channels[index];
    if (channel->tenant != tenant) continue;
    uint64_t end = submitted_of(channel);
    for (uint64_t place = done_of(channel); place < end; place++) {
      const struct sim_op *op = op_at(card, index, place);
      if (op->kind == SIM_RECORD) reach(&events[op->event], op->ticket, card->now_ns);
    }
    channel->started = false;
    atomic_store_explicit(&channel->done, end, memory_order_release);
  }
}

static void finish(struct sim_channel *channel, struct scan *scan) {
  channel->started = false;
  atomic_store_explicit(&channel->done, done_of(channel) + 1, memory_order_release);
  scan->changed = true;
}

/* Is there an operation older than `order` at the head of the channel? */
static bool holds_older(const struct sim_card *card, uint32_t index, uint64_t order) {
  const struct sim_channel *channel = &card->channels[index];
  uint64_t done = done_of(channel);
  return submitted_of(channel) > done && op_at(card, index, done)->order < order;
}

/* The legacy default stream and the blocking streams of its context wait for each other. */
static bool in_order(const struct sim_card *card, const struct sim_channel *channel, uint64_t order) {
  uint32_t flags = flags_of(channel);
  if (flags & SIM_CHANNEL_BLOCKING) return !holds_older(card, card->tenants[channel->tenant].legacy, order);
  if (flags & SIM_CHANNEL_LEGACY) {
    FOR_EACH_BUSY(card, index) {
      const struct sim_channel *other = &card->channels[index];
      if (other->tenant == channel->tenant && (flags_of(other) & SIM_CHANNEL_BLOCKING) &&
          holds_older(card, index, order))
        return false;
    }
  }
  return true;
}

/* Takes the channel out of the busy ones. False: something was pushed meanwhile. */
static bool retire(struct sim_card *card, uint32_t index) {
  struct sim_channel *channel = &card->channels[index];
  uint64_t bit = 1ull << (index % 64);
  atomic_fetch_and_explicit(&card->busy[index / 64], ~bit, memory_order_relaxed);
  atomic_thread_fence(memory_order_seq_cst);
  if (submitted_of(channel) != done_of(channel)) {
    atomic_fetch_or_explicit(&card->busy[index / 64], bit, memory_order_relaxed);
    return false;
  }
  if (flags_of(channel) & SIM_CHANNEL_CLOSED) atomic_store_explicit(&channel->flags, 0, memory_order_release);
  return true;
}

/* A kernel at the head of a channel: true where it is over. */
static bool look_at_kernel(struct sim_card *card, struct sim_channel *channel, const struct sim_op *op) {
  if (!channel->started) {
    channel->started = true;
    channel->start = ++card->starts;
    channel->left = op->work;
  }
  return channel->left == 0;
}

static bool look_at_copy(struct sim_card *card, struct sim_channel *channel, const struct sim_op *op,
                         struct scan *scan) {
  if (!channel->started) {
    channel->started = true;
    channel->left = later(card->now_ns, card->engine_free_ns[op->engine]) + op->work;
    card->engine_free_ns[op->engine] = channel->left;
  }
  if (channel->left <= card->now_ns) return true;
  scan->next_ns = earlier(scan->next_ns, channel->left);
  scan->copying = true;
  return false;
}

/* An operation that takes no time of the card, once it may be done. */
static bool may_pass(const struct sim_card *card, struct sim_event *events, struct sim_channel *channel,
                     const struct sim_op *op) {
  uint64_t place = done_of(channel) + 1;
  switch (op->kind) {
  case SIM_RECORD:
    reach(&events[op->event], op->ticket, card->now_ns);
    return true;
  case SIM_WAIT:
    return atomic_load_explicit(&events[op->event].reached, memory_order_acquire) >= op->ticket;
  case SIM_JOIN:
    return done_of(&card->channels[op->channel]) >= op->ticket;
  case SIM_HOST:
    atomic_store_explicit(&channel->host_turn, place, memory_order_release);
    return atomic_load_explicit(&channel->host_done, memory_order_acquire) >= place;
  default:
    return true;
  }
}

/* Ends whatever of a channel is over, and notes what it waits for. */
static void look_at_channel(struct sim_card *card, struct sim_event *events, uint32_t index, struct scan *scan) {
  struct sim_channel *channel = &card->channels[index];
  for (;;) {
    uint64_t done = done_of(channel);
    if (submitted_of(channel) == done) {
      if (retire(card, index)) return;
      continue;
    }
    const struct sim_op *op = op_at(card, index, done);
    if (op->submitted_ns > card->now_ns) {
      scan->next_ns = earlier(scan->next_ns, op->submitted_ns);
      return;
    }
    if (!channel->started && !in_order(card, channel, op->order)) {
      scan->blocked = true;
      return;
    }
    if (op->kind == SIM_KERNEL) {
      if (!look_at_kernel(card, channel, op)) {
        scan->ready[scan->ready_count++] = (uint16_t)index;
        return;
      }
      if (op->flags & SIM_FAULT) {
        atomic_store_explicit(&card->tenants[channel->tenant].error, (uint32_t)op->ticket, memory_order_release);
        sim_card_abandon(card, events, channel->tenant);
        scan->changed = scan->blocked = true; /* what was seen of its other channels no longer holds */
        return;
      }
    } else if (op->kind == SIM_COPY) {
      if (!look_at_copy(card, channel, op, scan)) return;
    } else if (!may_pass(card, events, channel, op)) {
      scan->blocked = true;
      return;
    }
    finish(channel, scan);
  }
}

/* Ends everything that is over at card->now_ns. */
static void settle(struct sim_card *card, struct sim_event *events, struct scan *scan) {
  do {
    scan->changed = scan->blocked = scan->copying = false;
    scan->next_ns = SIM_NEVER;
    scan->ready_count = 0;
    FOR_EACH_BUSY(card, index) look_at_channel(card, events, index, scan);
  } while (scan->changed && scan->blocked);
}

static int32_t tenant_of(const struct sim_card *card, const struct scan *scan, uint32_t at) {
  return (int32_t)card->channels[scan->ready[at]].tenant;
}

/* Who has the SMs from now on. Sets the end of the slice where others wait for it. */
static void choose(struct sim_card *card, struct scan *scan) {
  int32_t next = SIM_NO_TENANT, first = SIM_NO_TENANT;
  bool stays = false;
  for (uint32_t i = 0; i < scan->ready_count; i++) {
    int32_t tenant = tenant_of(card, scan, i);
    if (tenant == card->running)
      stays = true;
    else {
      if (first == SIM_NO_TENANT || tenant < first) first = tenant;
      if (tenant > card->running && (next == SIM_NO_TENANT || tenant < next)) next = tenant;
    }
  }
  if (next == SIM_NO_TENANT) next = first;
  bool expired = card->now_ns >= card->slice_end_ns;
  if (next != SIM_NO_TENANT && (!stays || expired)) {
    bool changes = card->running != SIM_NO_TENANT;
    card->running = next;
    card->switched_ns = card->now_ns + (changes ? card->switch_ns : 0);
    card->slice_end_ns = card->switched_ns + card->slice_ns;
    card->switches += changes;
  } else if (stays && expired) {
    /* Alone: one slice follows the other, whenever anybody looked in between. */
    card->slice_end_ns += divide_up(card->now_ns - card->slice_end_ns + 1, card->slice_ns) * card->slice_ns;
  }
  if (next != SIM_NO_TENANT) scan->next_ns = earlier(scan->next_ns, card->slice_end_ns);
}

static bool goes_before(const struct sim_channel *a, const struct sim_channel *b) {
  return a->priority != b->priority ? a->priority < b->priority : a->start < b->start;
}

/* Leaves in scan->ready the kernels that run, and in scan->grants how many SMs each has. */
static void grant(struct sim_card *card, struct scan *scan) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < scan->ready_count; i++) {
    if (tenant_of(card, scan, i) != card->running) continue;
    uint16_t index = scan->ready[i];
    uint32_t at = count++;
    for (; at > 0 && goes_before(&card->channels[index], &card->channels[scan->ready[at - 1]]); at--)
      scan->ready[at] = scan->ready[at - 1];
    scan->ready[at] = index;
  }
  uint32_t free = card->sms;
  uint32_t running = 0;
  for (; running < count && free > 0; running++) {
    struct sim_channel *channel = &card->channels[scan->ready[running]];
    const struct sim_op *op = op_at(card, scan->ready[running], done_of(channel));
    if ((op->flags & SIM_GANG) && op->width > free) break;
    uint32_t sms = op->width < free ? op->width : free;
    free -= sms;
    scan->grants[running] = sms;
    scan->next_ns = earlier(scan->next_ns, later(card->now_ns, card->switched_ns) + divide_up(channel->left, sms));
  }
  scan->ready_count = running;
  if (card->now_ns < card->switched_ns) scan->next_ns = earlier(scan->next_ns, card->switched_ns);
}

/* Lets the time until `to_ns` pass: nothing begins or ends before. */
static void pass(struct sim_card *card, struct scan *scan, uint64_t to_ns) {
  uint64_t duration = to_ns - card->now_ns;
  bool works = scan->ready_count > 0;
  if (works && card->now_ns >= card->switched_ns) {
    for (uint32_t i = 0; i < scan->ready_count; i++) {
      struct sim_channel *channel = &card->channels[scan->ready[i]];
      channel->left -= earlier(channel->left, duration * scan->grants[i]);
    }
    card->tenants[card->running].busy_ns += duration;
  }
  card->now_ns = to_ns;
  int process = works ? (int)card->tenants[card->running].process : -1;
  sim_usage_pass(&card->usage, to_ns, duration, process, scan->copying);
}

void sim_card_advance(struct sim_card *card, struct sim_event *events, uint64_t now_ns) {
  struct scan scan;
  if (now_ns < card->now_ns) now_ns = card->now_ns;
  for (;;) {
    settle(card, events, &scan);
    if (card->now_ns >= now_ns) return;
    if (scan.ready_count > 0) {
      choose(card, &scan);
      grant(card, &scan);
    }
    uint64_t to = earlier(earlier(scan.next_ns, sim_usage_window_end(&card->usage)), now_ns);
    pass(card, &scan, to);
  }
}

static uint64_t earliest(const struct sim_card *card, const struct sim_event *events, uint32_t index, uint64_t ticket,
                         int depth) {
  const struct sim_channel *channel = &card->channels[index];
  uint64_t time = card->now_ns, done = done_of(channel), end = submitted_of(channel);
  if (ticket < end) end = ticket;
  for (uint64_t place = done; place < end; place++) {
    const struct sim_op *op = op_at(card, index, place);
    bool started = place == done && channel->started;
    time = later(time, op->submitted_ns);
    uint64_t until = time;
    if (op->kind == SIM_KERNEL) {
      time += divide_up(started ? channel->left : op->work, op->width < card->sms ? op->width : card->sms);
    } else if (op->kind == SIM_COPY) {
      time = started ? later(time, channel->left) : time + op->work;
    } else if (op->kind == SIM_JOIN && depth > 0) {
      until = earliest(card, events, op->channel, op->ticket, depth - 1);
    } else if (op->kind == SIM_WAIT) {
      const struct sim_event *event = &events[op->event];
      if (atomic_load_explicit(&event->reached, memory_order_acquire) >= op->ticket) continue;
      if (event->card != card->index) return SIM_NEVER;
      if (depth > 0 && op->ticket == atomic_load(&event->recorded))
        until = earliest(card, events, event->channel, event->place, depth - 1);
    } else if (op->kind == SIM_HOST) {
      if (atomic_load_explicit(&channel->host_done, memory_order_acquire) <= place) return SIM_NEVER;
    }
    if (until == SIM_NEVER) return SIM_NEVER;
    time = later(time, until);
  }
  return time;
}

uint64_t sim_card_earliest(const struct sim_card *card, const struct sim_event *events, uint32_t channel,
                           uint64_t ticket) {
  return earliest(card, events, channel, ticket, 4);
}

int sim_card_open_tenant(struct sim_card *card, uint32_t process) {
  for (uint32_t i = 0; i < SIM_MAX_TENANTS; i++) {
    struct sim_tenant *tenant = &card->tenants[i];
    if (atomic_load(&tenant->used)) continue;
    memset(tenant, 0, sizeof *tenant);
    tenant->process = process;
    atomic_store(&tenant->used, 1);
    int legacy = sim_card_open_channel(card, i, SIM_CHANNEL_LEGACY, 0);
    if (legacy < 0) {
      atomic_store(&tenant->used, 0);
      return -1;
    }
    tenant->legacy = (uint32_t)legacy;
    atomic_fetch_add(&card->tenant_count, 1);
    return (int)i;
  }
  return -1;
}

int sim_card_open_channel(struct sim_card *card, uint32_t tenant, uint32_t flags, int32_t priority) {
  for (uint32_t i = 0; i < SIM_MAX_CHANNELS; i++) {
    struct sim_channel *channel = &card->channels[i];
    if (flags_of(channel) != 0 || is_busy(card, i)) continue;
    /* The counts go on: a ticket of the channel's earlier life stays reached. */
    channel->tenant = tenant;
    channel->priority = priority;
    channel->started = false;
    atomic_store_explicit(&channel->flags, flags | SIM_CHANNEL_USED, memory_order_release);
    return (int)i;
  }
  return -1;
}

void sim_card_close_channel(struct sim_card *card, uint32_t index) {
  struct sim_channel *channel = &card->channels[index];
  atomic_fetch_or(&channel->flags, SIM_CHANNEL_CLOSED);
  if (!is_busy(card, index)) atomic_store_explicit(&channel->flags, 0, memory_order_release);
}

void sim_card_close_tenant(struct sim_card *card, struct sim_event *events, uint32_t tenant) {
  sim_card_abandon(card, events, tenant);
  for (uint32_t i = 0; i < SIM_MAX_CHANNELS; i++) {
    struct sim_channel *channel = &card->channels[i];
    if (flags_of(channel) == 0 || channel->tenant != tenant) continue;
    atomic_fetch_and(&card->busy[i / 64], ~(1ull << (i % 64)));
    atomic_store_explicit(&channel->flags, 0, memory_order_release);
  }
  if (card->running == (int32_t)tenant) card->slice_end_ns = card->now_ns;
  atomic_store(&card->tenants[tenant].used, 0);
  atomic_fetch_sub(&card->tenant_count, 1);
}
