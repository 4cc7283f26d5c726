/*
 * The time model of one GPU. Pure: no clock, no lock, no system call. The caller holds the GPU's lock and passes the
 * current time. The model has no thread: every query first advances it to the present, and the answer does not depend
 * on how often it is queried.
 *
 * The rules:
 * - A tenant is a context. One tenant at a time has the SMs, for one time slice. Then the next tenant with a ready
 *   kernel gets them, in round-robin order. A tenant without a ready kernel gives the SMs up at once. A switch takes
 *   switch_ns if it interrupts a tenant, and idle_switch_ns if that tenant has nothing to run. Clients of one MPS
 * server are one tenant in this: their kernels run concurrently, those of each client on at most so many SMs as it may
 * use.
 * - An event is recorded while its tenant has the SMs, like a small kernel of `work` ns. Without work it takes no time.
 * - The clock follows the load: in a window that follows one with load l, kernels run faster by boost_percent * (1 -
 * l).
 * - Kernels of the running tenant run concurrently as far as the SMs suffice: ordered by priority, then by start, each
 *   kernel gets as many of the free SMs as it can use, and its speed is proportional to them.
 * - A channel executes its operations in order. Copy engines are shared by all tenants, serve copies first come, first
 *   served, and run concurrently with kernels.
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

/* A tenant as the client of an MPS server. */
struct sim_client {
  uint32_t server;   /* number of the server; 0: the tenant is no client */
  uint32_t together; /* its kernels run beside those of the server's other clients */
  uint32_t most_sms; /* of its kernels together */
  uint32_t priority; /* 0: normal; 1: below normal */
};

struct sim_tenant {
  _Atomic uint32_t used;
  uint32_t process;       /* slot of the owning process */
  uint32_t legacy;        /* its channel of the legacy default stream */
  _Atomic uint32_t error; /* CUresult that all calls in the context return after a kernel faulted */
  _Atomic uint64_t order; /* submissions so far */
  uint64_t busy_ns;       /* time with kernels on the GPU */
  struct sim_client client;
};

/* What a GPU takes for its own work, in ns of time. */
struct sim_pace {
  uint64_t slice_ns;
  uint64_t switch_ns;
  uint64_t idle_switch_ns;
  uint64_t boost_percent;
};

struct sim_model {
  uint32_t index; /* of the GPU in the machine */
  uint32_t sms;
  struct sim_pace pace;

  uint64_t now_ns; /* the model is advanced to this time */
  int32_t running; /* tenant that has the SMs */
  uint64_t slice_end_ns;
  uint64_t switched_ns; /* the switch between tenants lasts until then */
  uint64_t starts;
  uint64_t switches;
  uint64_t engine_free_ns[SIM_ENGINES];
  uint64_t speed_ppm; /* of the clock, relative to full load */

  _Atomic uint64_t busy[SIM_CHANNEL_WORDS]; /* bit per channel: it may hold operations */
  _Atomic uint32_t tenant_count;
  struct sim_tenant tenants[SIM_MAX_TENANTS];
  struct sim_usage usage;
  struct sim_channel channels[SIM_MAX_CHANNELS];
  struct sim_op rings[SIM_MAX_CHANNELS][SIM_RING]; /* kept apart, so that unused rings use no memory */
};

void sim_model_begin(struct sim_model *model, uint32_t index, uint32_t sms, const struct sim_pace *pace,
                     uint64_t now_ns);

/* Advances the model to `now_ns`. `events` is the machine's event table. An earlier time has no effect. */
void sim_model_advance(struct sim_model *model, struct sim_event *events, uint64_t now_ns);

/*
 * The earliest time at which operation `ticket` of a channel can be complete if no other tenant uses the GPU. SIM_NEVER
 * if that depends on something outside of the model (a host function, an event of another GPU). The model must be
 * advanced to the present.
 */
uint64_t sim_model_earliest(const struct sim_model *model, const struct sim_event *events, uint32_t channel,
                            uint64_t ticket);

/* Adds a tenant, or a channel of a tenant. -1: no free slot. */
int sim_model_open_tenant(struct sim_model *model, uint32_t process);
int sim_model_open_channel(struct sim_model *model, uint32_t tenant, uint32_t flags, int32_t priority);

/* Makes a tenant without operations the client of an MPS server. */
void sim_model_join(struct sim_model *model, uint32_t tenant, const struct sim_client *client);

/* Whether a tenant has operations that are not complete. */
bool sim_model_works(const struct sim_model *model, uint32_t tenant);

/* Fails a tenant, as a kernel that faults does. With `neighbours`, all clients of its MPS server fail with it. */
void sim_model_fail(struct sim_model *model, struct sim_event *events, uint32_t tenant, uint32_t error,
                    bool neighbours);

/* Closes a channel after its stream was destroyed. Its queued operations still run. */
void sim_model_close_channel(struct sim_model *model, uint32_t channel);

/* Drops the queued operations of a tenant. Events that they would have recorded count as recorded. */
void sim_model_abandon(struct sim_model *model, struct sim_event *events, uint32_t tenant);

/* Removes a tenant with its queued operations and channels. */
void sim_model_close_tenant(struct sim_model *model, struct sim_event *events, uint32_t tenant);

/*
 * Appends an operation without a lock. The caller is the only thread that pushes to this channel and has checked that
 * there is room (submitted - done < SIM_RING). Returns the ticket: the channel's number of operations including this
 * one.
 */
static inline uint64_t sim_model_push(struct sim_model *model, uint32_t index, const struct sim_op *op) {
  struct sim_channel *channel = &model->channels[index];
  uint64_t place = atomic_load_explicit(&channel->submitted, memory_order_relaxed);
  struct sim_op *slot = &model->rings[index][place % SIM_RING];
  *slot = *op;
  slot->order = atomic_fetch_add_explicit(&model->tenants[channel->tenant].order, 1, memory_order_relaxed);
  atomic_store_explicit(&channel->submitted, place + 1, memory_order_release);
  /* Pairs with retire(), which clears the bit and then reads `submitted` again; here the order is reversed. */
  atomic_thread_fence(memory_order_seq_cst);
  uint64_t bit = 1ull << (index % 64);
  if ((atomic_load_explicit(&model->busy[index / 64], memory_order_relaxed) & bit) == 0)
    atomic_fetch_or_explicit(&model->busy[index / 64], bit, memory_order_relaxed);
  return place + 1;
}

#endif
