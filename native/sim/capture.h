/*
 * Capture: streams that build a graph in place of working.
 */
#ifndef SIM_CAPTURE_H
#define SIM_CAPTURE_H

#include "event.h"
#include "graph.h"

/* One graph that is being built, by one or more streams. */
struct session {
  unsigned long long id;
  CUstreamCaptureMode mode;
  pthread_t thread;
  CUgraph graph;
  bool own_graph; /* made for the capture, not given by the caller */
  size_t given;   /* nodes that a given graph had before */
  bool invalid;
  CUstream origin;
  unsigned int streams;
  struct session *next; /* of all that go on */
};

/* What a capturing stream has of its session: the nodes that its next one waits for. */
struct capture {
  struct session *session;
  CUgraphNode *waits;
  size_t count;
};

extern _Atomic unsigned int capture_sessions; /* that go on in this process */

static inline bool capture_is_active(CUstream stream) {
  return stream->capture != NULL;
}

/* Cheap: might a capture make this push something else than work? */
static inline bool capture_concerns(CUstream stream) {
  return stream->capture != NULL || atomic_load_explicit(&capture_sessions, memory_order_relaxed) > 0;
}

/*
 * A task for a stream while captures go on: becomes a node where this stream captures.
 * CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD stands for "not captured, push it".
 */
CUresult capture_take(CUstream stream, const struct task *task);

/* Calls that wait for a stream, or ask it: wrong on one that captures. */
CUresult capture_refuses(CUstream stream);

/* Calls that are unsafe while somebody captures, by the modes of thread and capture. They end the capture. */
CUresult capture_forbids(void);

CUresult capture_record_event(CUstream stream, CUevent event, unsigned int flags);
CUresult capture_wait_event(CUstream stream, CUevent event, unsigned int flags);

/* The stream is destroyed. */
void capture_abandon(CUstream stream);

#endif
