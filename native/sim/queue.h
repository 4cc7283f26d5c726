/*
 * Work queues in shared memory: operations, channels and events.
 *
 * A channel is the GPU's side of a stream: operations in order. Its owner (one process, one pushing thread at a time)
 * writes `submitted` and the operations. The holder of the GPU's lock advances the model and writes everything else. No
 * process waits for another process in this code.
 */
#ifndef SIM_QUEUE_H
#define SIM_QUEUE_H

#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum { SIM_RING = 1024 }; /* capacity of a channel: the GPU's limit of pending launches */

enum sim_kind {
  SIM_KERNEL, /* occupies up to `width` SMs for `work` SM-nanoseconds */
  SIM_COPY,   /* occupies copy engine `engine` for `work` nanoseconds */
  SIM_RECORD, /* stamps event `event` with `ticket`, after `work` ns on the SMs */
  SIM_WAIT,   /* waits until event `event` has reached `ticket` */
  SIM_JOIN,   /* waits until channel `channel` of the same GPU has completed `ticket` operations */
  SIM_HOST,   /* waits until the process has run the host function: see host_done */
  SIM_MARK,   /* takes no time */
};

enum sim_op_flags {
  SIM_GANG = 1u << 0,  /* starts only when all its SMs are free (cooperative launch) */
  SIM_FAULT = 1u << 1, /* fails at its end: `ticket` is the error for the context */
};

enum sim_engine { SIM_TO_DEVICE = 0, SIM_TO_HOST = 1, SIM_ENGINES = 2 };

struct sim_op {
  uint64_t submitted_ns; /* earliest start */
  uint64_t order;        /* sequence number among all operations of the tenant */
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
  SIM_CHANNEL_LEGACY = 1u << 1,   /* the tenant's legacy default stream: ordered with all blocking channels */
  SIM_CHANNEL_BLOCKING = 1u << 2, /* ordered with the tenant's legacy channel */
  SIM_CHANNEL_CLOSED = 1u << 3,   /* its stream is destroyed; the channel becomes free when it is drained */
};

struct sim_channel {
  alignas(64) _Atomic uint64_t submitted; /* number of operations pushed; written by the owner */
  alignas(64) _Atomic uint64_t done;      /* number of operations completed; written by the model */
  _Atomic uint64_t host_done;             /* SIM_HOST operations completed; written by the owner */
  _Atomic uint64_t host_turn;             /* SIM_HOST operations that the owner may run; written by the model */
  _Atomic uint32_t flags;
  uint32_t tenant;
  int32_t priority; /* smaller values run first */
  bool started;     /* the operation at `done` is on the GPU */
  uint64_t start;   /* start number: kernels that started earlier keep their SMs */
  uint64_t left;    /* kernel: remaining SM-nanoseconds; copy: end time */
};

/* An event counts its records: the recording process writes `recorded`, the model writes `reached` and `time_ns`. Other
 * channels, GPUs and processes may wait for events. */
struct sim_event {
  _Atomic uint64_t recorded;
  _Atomic uint64_t reached;
  _Atomic uint64_t time_ns; /* time of the last change of `reached` */
  _Atomic uint32_t owner;   /* process slot + 1; 0: free */
  uint32_t gpu;             /* last record: GPU, channel and ticket */
  uint32_t channel;
  uint64_t place;
};

#endif
