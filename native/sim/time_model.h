/*
 * The time model of one GPU. Pure: no clock, no lock, no system call; the caller holds the GPU's lock and says what
 * time it is. Nothing happens by itself: whoever asks moves the model to the present, and the answer is the same
 * whether it is asked often or rarely.
 *
 * The law:
 * - A tenant is a context. One tenant at a time has the SMs, for a slice; then the next one that has a kernel ready
 * gets them, in turn. A tenant without a ready kernel gives the SMs up at once. Changing tenants takes switch_ns.
 * - The kernels of the tenant that has the SMs run together as far as the SMs reach: in order of priority, then of
 * their start, each gets as many of the SMs that are left as it can use, and goes on in proportion.
 * - A channel does its operations in order. Copies have engines of their own, shared by all tenants, first come first
 * served, and run beside kernels.
 */
#ifndef SIM_TIME_MODEL_H
#define SIM_TIME_MODEL_H

#include "queue.h"
#include "usage.h"

enum {
  SIM_MAX_TENANTS = 256,
  SIM_MAX_CHANNELS = 512,
  SIM_CHANNEL_WORDS = SIM_MAX_CHANNELS / 64,
  SIM_NO_TENANT = -1,
};

#define SIM_NEVER UINT64_MAX

struct sim_tenant {
  _Atomic uint32_t used;
  uint32_t process;       /* slot of the process that it belongs to */
  uint32_t legacy;        /* its legacy channel */
  _Atomic uint32_t error; /* CUresult that ends the context: a kernel faulted */
  _Atomic uint64_t order; /* submissions so far */
  uint64_t busy_ns;       /* with kernels on the GPU */
};

struct sim_model {
  uint32_t index; /* of the machine's GPUs */
  uint32_t sms;
  uint64_t slice_ns;
  uint64_t switch_ns;

  uint64_t now_ns; /* the model stands here */
  int32_t running; /* tenant that has the SMs */
  uint64_t slice_end_ns;
  uint64_t switched_ns; /* the SMs change hands until then */
  uint64_t starts;
  uint64_t switches;
  uint64_t engine_free_ns[SIM_ENGINES];

  _Atomic uint64_t busy[SIM_CHANNEL_WORDS]; /* channels that may hold operations */
  _Atomic uint32_t tenant_count;
  struct sim_tenant tenants[SIM_MAX_TENANTS];
  struct sim_usage usage;
  struct sim_channel channels[SIM_MAX_CHANNELS];
  struct sim_op rings[SIM_MAX_CHANNELS][SIM_RING]; /* apart: a ring that nobody uses takes no memory */
};

void sim_model_begin(struct sim_model *model, uint32_t index, uint32_t sms, uint64_t slice_ns, uint64_t switch_ns,
                     uint64_t now_ns);

/* Moves the model to `now_ns`. `events` is the machine's table. Going back does nothing. */
void sim_model_advance(struct sim_model *model, struct sim_event *events, uint64_t now_ns);

/*
 * When operation `ticket` of a channel can be done at the earliest, if nobody else wants the GPU; SIM_NEVER where that
 * depends on something outside (a host function, an event of another GPU). For a model that stands at the present.
 */
uint64_t sim_model_earliest(const struct sim_model *model, const struct sim_event *events, uint32_t channel,
                            uint64_t ticket);

/* A tenant or a channel of a tenant comes. -1: no room. */
int sim_model_open_tenant(struct sim_model *model, uint32_t process);
int sim_model_open_channel(struct sim_model *model, uint32_t tenant, uint32_t flags, int32_t priority);

/* The stream of a channel is gone: what it holds is still done. */
void sim_model_close_channel(struct sim_model *model, uint32_t channel);

/* Drops what a tenant has queued. Events that it would still have recorded count as reached. */
void sim_model_abandon(struct sim_model *model, struct sim_event *events, uint32_t tenant);

/* A tenant is gone, with all that it had queued and its channels. */
void sim_model_close_tenant(struct sim_model *model, struct sim_event *events, uint32_t tenant);

/*
 * Appends an operation, without any lock. The caller is the only one that pushes to this channel now and has seen that
 * there is room (submitted - done < SIM_RING). Returns the channel's count of operations with this one, its ticket.
 */
static inline uint64_t sim_model_push(struct sim_model *model, uint32_t index, const struct sim_op *op) {
  struct sim_channel *channel = &model->channels[index];
  uint64_t place = atomic_load_explicit(&channel->submitted, memory_order_relaxed);
  struct sim_op *slot = &model->rings[index][place % SIM_RING];
  *slot = *op;
  slot->order = atomic_fetch_add_explicit(&model->tenants[channel->tenant].order, 1, memory_order_relaxed);
  atomic_store_explicit(&channel->submitted, place + 1, memory_order_release);
  /* The model clears the bit and then looks at `submitted` once more; here it is the other way round. */
  atomic_thread_fence(memory_order_seq_cst);
  uint64_t bit = 1ull << (index % 64);
  if ((atomic_load_explicit(&model->busy[index / 64], memory_order_relaxed) & bit) == 0)
    atomic_fetch_or_explicit(&model->busy[index / 64], bit, memory_order_relaxed);
  return place + 1;
}

#endif
