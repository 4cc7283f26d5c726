/*
 * Streams: how operations get to a channel of the GPU.
 */
#ifndef SIM_STREAM_H
#define SIM_STREAM_H

#include "clock.h"
#include "driver.h"
#include "model.h"

enum { STREAM_GREATEST_PRIORITY = -5, STREAM_MAGIC = 0x5354524d };

struct capture;

struct CUstream_st {
  uint32_t magic;
  uint32_t channel;
  CUcontext context;
  struct sim_channel *queue;
  pthread_mutex_t lock; /* who pushes */
  struct capture *capture;
  unsigned int flags;
  int priority;
  unsigned long long id;
  bool destroyed;
  bool own; /* some thread's per-thread default stream */
  pthread_t thread;
  CUlaunchAttributeValue policy;
  struct CUstream_st *next; /* of its context's */
};

/* What a stream argument means in the current context, which must be healthy. */
CUresult stream_resolve(CUstream handle, CUstream *stream);

/* A stream that no caller sees. */
CUresult stream_open(CUcontext context, unsigned int flags, int priority, CUstream *stream);
void stream_close(CUstream stream);

/* The streams of a context but the legacy one, in a list that has room for SIM_MAX_CHANNELS. Returns how many there
 * are. */
size_t stream_list(CUcontext context, CUstream *streams);

/*
 * Appends an operation; waits for room where the GPU's queue is full. Returns its ticket: the channel's `done` reaches
 * it when the operation is over.
 */
uint64_t stream_push(CUstream stream, struct sim_op *op);

/* Everything pushed so far is over. */
bool stream_is_done(CUstream stream);
CUresult stream_wait(CUstream stream);

/* Waits for one operation. */
CUresult stream_wait_for(CUstream stream, uint64_t ticket);

static inline uint64_t stream_tail(CUstream stream) {
  return atomic_load_explicit(&stream->queue->submitted, memory_order_acquire);
}

#endif
