/*
 * Queues of work, as they lie in shared memory: operations, channels, events.
 *
 * A channel is what a stream becomes on the GPU: operations in order. Its owner (one process, which lets one thread at
 * a time push) writes `submitted` and the operations behind it; whoever holds the GPU's lock moves the model on and
 * writes everything else. Nobody waits for anybody here.
 */
#ifndef SIM_QUEUE_H
#define SIM_QUEUE_H

#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum { SIM_RING = 1024 }; /* operations that a channel holds: a GPU's own limit of pending launches */

enum sim_kind {
  SIM_KERNEL, /* occupies up to `width` SMs for `work` SM-nanoseconds */
  SIM_COPY,   /* occupies copy engine `engine` for `work` nanoseconds */
  SIM_RECORD, /* stamps event `event` with `ticket` */
  SIM_WAIT,   /* waits until event `event` has reached `ticket` */
  SIM_JOIN,   /* waits until channel `channel` of the same GPU has done `ticket` operations */
  SIM_HOST,   /* waits until the process has done its part: see host_done */
  SIM_MARK,   /* takes no time */
};

enum sim_op_flags {
  SIM_GANG = 1u << 0,  /* starts only where all its SMs are free (cooperative launch) */
  SIM_FAULT = 1u << 1, /* fails when it has run: `ticket` is the error that the context gets */
};

enum sim_engine { SIM_TO_DEVICE = 0, SIM_TO_HOST = 1, SIM_ENGINES = 2 };

struct sim_op {
  uint64_t submitted_ns; /* not before this */
  uint64_t order;        /* place among everything that its tenant submitted */
  uint64_t work;
  uint64_t ticket;
  union {
    uint32_t width;
    uint32_t engine;
    uint32_t event;
    uint32_t channel;
  };
  uint16_t kind;
  uint16_t flags;
};

enum sim_channel_flags {
  SIM_CHANNEL_USED = 1u << 0,
  SIM_CHANNEL_LEGACY = 1u << 1,   /* the tenant's legacy default stream: in order with all blocking channels */
  SIM_CHANNEL_BLOCKING = 1u << 2, /* in order with the tenant's legacy channel */
  SIM_CHANNEL_CLOSED = 1u << 3,   /* its stream is destroyed: it is free again once it is drained */
};

struct sim_channel {
  alignas(64) _Atomic uint64_t submitted; /* operations pushed so far, by the owner */
  alignas(64) _Atomic uint64_t done;      /* operations finished so far, by the model */
  _Atomic uint64_t host_done;             /* SIM_HOST operations up to here have been done, by the owner */
  _Atomic uint64_t host_turn;             /* operations up to here are the owner's turn, by the model */
  _Atomic uint32_t flags;
  uint32_t tenant;
  int32_t priority; /* smaller goes first */
  bool started;     /* the operation at `done` is on the GPU */
  uint64_t start;   /* its place among the starts, earlier ones keep their SMs */
  uint64_t left;    /* kernel: SM-nanoseconds to go; copy: when it ends */
};

/*
 * An event counts its records: `recorded` by the process that records, `reached` and `time_ns` by the model. Events may
 * be waited for from other channels, GPUs and processes.
 */
struct sim_event {
  _Atomic uint64_t recorded;
  _Atomic uint64_t reached;
  _Atomic uint64_t time_ns; /* when `reached` was last written */
  _Atomic uint32_t owner;   /* process slot + 1; 0: free */
  uint32_t gpu;             /* where it was recorded last: GPU, channel and the place there */
  uint32_t channel;
  uint64_t place;
};

#endif
