/* Stream capture: streams that record a graph instead of executing work. */
#ifndef SIM_CAPTURE_H
#define SIM_CAPTURE_H

#include "event.h"
#include "graph.h"

/* One capture: a graph that is recorded from one or more streams. */
struct session {
  unsigned long long id;
  CUstreamCaptureMode mode;
  pthread_t thread;
  CUgraph graph;
  bool own_graph; /* created for the capture, not passed by the caller */
  size_t given;   /* nodes that a passed graph had before the capture */
  bool invalid;
  CUstream origin;
  unsigned int streams;
  struct session *next; /* list of captures in progress */
};

/* State of a capturing stream: its session, and the nodes that its next node depends on. */
struct capture {
  struct session *session;
  CUgraphNode *waits;
  size_t count;
};

extern _Atomic unsigned int capture_sessions; /* captures in progress in this process */

static inline bool capture_is_active(CUstream stream) {
  return stream->capture != NULL;
}

/* Cheap check whether a capture may affect this push. */
static inline bool capture_concerns(CUstream stream) {
  return stream->capture != NULL || atomic_load_explicit(&capture_sessions, memory_order_relaxed) > 0;
}

/* Adds a task of a capturing stream to its graph. Returns CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD if the stream does not
 * capture; the caller then pushes the task. */
CUresult capture_take(CUstream stream, const struct task *task);

/* Check for calls that wait for a stream or query it: an error while it captures. */
CUresult capture_refuses(CUstream stream);

/* Check for calls that are unsafe while a capture is in progress, depending on the capture modes of thread and capture.
 * They invalidate the capture. */
CUresult capture_forbids(void);

CUresult capture_record_event(CUstream stream, CUevent event, unsigned int flags);
CUresult capture_wait_event(CUstream stream, CUevent event, unsigned int flags);

/* Called when the stream is destroyed. */
void capture_abandon(CUstream stream);

#endif
