/* Streams: how operations reach a channel of the GPU. */
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
  pthread_mutex_t lock; /* held by the pushing thread */
  struct capture *capture;
  unsigned int flags;
  int priority;
  unsigned long long id;
  bool destroyed;
  bool own; /* per-thread default stream of a thread */
  pthread_t thread;
  CUlaunchAttributeValue policy;
  struct CUstream_st *next; /* list of the context's streams */
};

/* Resolves a stream argument in the current context, which must not have failed. */
CUresult stream_resolve(CUstream handle, CUstream *stream);

/* Whether a handle is not the legacy default stream, which batches of copies and prefetches refuse. */
static inline bool stream_is_not_legacy(CUstream handle) {
  return handle != NULL && handle != CU_STREAM_LEGACY;
}

/* Opens an internal stream that callers do not see. */
CUresult stream_open(CUcontext context, unsigned int flags, int priority, CUstream *stream);
void stream_close(CUstream stream);

/* Lists the streams of a context except the legacy one, at most SIM_MAX_CHANNELS. Returns their number. */
size_t stream_list(CUcontext context, CUstream *streams);

/* Appends an operation and waits while the GPU's queue is full. Returns its ticket, which the channel's `done` reaches
 * when the operation is complete. */
uint64_t stream_push(CUstream stream, struct sim_op *op);

/* Whether everything pushed so far is complete. */
bool stream_is_done(CUstream stream);
CUresult stream_wait(CUstream stream);

/* Waits for one operation. */
CUresult stream_wait_for(CUstream stream, uint64_t ticket);

static inline uint64_t stream_tail(CUstream stream) {
  return atomic_load_explicit(&stream->queue->submitted, memory_order_acquire);
}

#endif
