#include "capture.h"

#include "context.h"

#include <stdlib.h>
#include <string.h>

_Atomic unsigned int capture_sessions;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct session *sessions;
static _Atomic unsigned long long next_id = 1;

static void invalidate(struct session *session) {
  session->invalid = true;
}

/* ---- dependencies of capturing streams ---- */

static CUresult set_waits(struct capture *capture, const CUgraphNode *nodes, size_t count, bool add) {
  size_t kept = add ? capture->count : 0;
  CUgraphNode *waits = calloc(kept + count + 1, sizeof *waits);
  if (waits == NULL) return CUDA_ERROR_OUT_OF_MEMORY;
  if (kept > 0) memcpy(waits, capture->waits, kept * sizeof *waits);
  for (size_t i = 0; i < count; i++) {
    bool there = false;
    for (size_t k = 0; k < kept; k++)
      there = there || waits[k] == nodes[i];
    if (!there) waits[kept++] = nodes[i];
  }
  free(capture->waits);
  capture->waits = waits;
  capture->count = kept;
  return CUDA_SUCCESS;
}

static CUresult join(CUstream stream, struct session *session) {
  struct capture *capture = calloc(1, sizeof *capture);
  if (capture == NULL) return CUDA_ERROR_OUT_OF_MEMORY;
  capture->session = session;
  session->streams++;
  stream->capture = capture;
  return CUDA_SUCCESS;
}

static void leave(CUstream stream) {
  if (stream->capture == NULL) return;
  stream->capture->session->streams--;
  free(stream->capture->waits);
  free(stream->capture);
  stream->capture = NULL;
}

static CUresult add(CUstream stream, const struct task *task) {
  struct capture *capture = stream->capture;
  CUgraphNode node;
  if (capture->session->invalid) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  struct task placed = *task;
  placed.context = stream->context;
  TRY(graph_add(capture->session->graph, capture->waits, capture->count, &placed, &node));
  return set_waits(capture, &node, 1, false);
}

/* Whether a blocking stream of this context captures. The legacy stream would have to wait for it. */
static bool is_awaited_by_legacy(CUstream stream) {
  if (stream != stream->context->legacy) return false;
  CUstream streams[SIM_MAX_CHANNELS];
  size_t count = stream_list(stream->context, streams);
  for (size_t i = 0; i < count; i++)
    if (streams[i]->capture != NULL && !(streams[i]->flags & CU_STREAM_NON_BLOCKING)) return true;
  return false;
}

CUresult capture_take(CUstream stream, const struct task *task) {
  CUresult result = CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
  pthread_mutex_lock(&lock);
  if (stream->capture != NULL)
    result = add(stream, task);
  else if (is_awaited_by_legacy(stream)) {
    for (struct session *session = sessions; session != NULL; session = session->next)
      invalidate(session);
    result = CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
  }
  pthread_mutex_unlock(&lock);
  return result;
}

CUresult capture_refuses(CUstream stream) {
  CUresult result = CUDA_SUCCESS;
  if (!capture_concerns(stream)) return CUDA_SUCCESS;
  pthread_mutex_lock(&lock);
  if (stream->capture != NULL) {
    invalidate(stream->capture->session);
    result = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  } else if (is_awaited_by_legacy(stream)) {
    result = CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
  }
  pthread_mutex_unlock(&lock);
  return result == CUDA_SUCCESS ? capture_forbids() : result;
}

CUresult capture_forbids(void) {
  CUresult result = CUDA_SUCCESS;
  if (atomic_load_explicit(&capture_sessions, memory_order_relaxed) == 0) return CUDA_SUCCESS;
  if (thread.capture_mode == CU_STREAM_CAPTURE_MODE_RELAXED) return CUDA_SUCCESS;
  pthread_mutex_lock(&lock);
  for (struct session *session = sessions; session != NULL; session = session->next) {
    bool mine = pthread_equal(session->thread, pthread_self());
    bool forbids =
        mine ? session->mode != CU_STREAM_CAPTURE_MODE_RELAXED
             : session->mode == CU_STREAM_CAPTURE_MODE_GLOBAL && thread.capture_mode == CU_STREAM_CAPTURE_MODE_GLOBAL;
    if (!forbids) continue;
    invalidate(session);
    result = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  }
  pthread_mutex_unlock(&lock);
  return result;
}

/* ---- events extend a capture from stream to stream ---- */

static CUresult record_event(CUstream stream, CUevent event, unsigned int flags) {
  struct capture *capture = stream->capture;
  if (capture->session->invalid) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  if (flags & CU_EVENT_RECORD_EXTERNAL) {
    struct task task = {.type = CU_GRAPH_NODE_TYPE_EVENT_RECORD, .event = event};
    return add(stream, &task);
  }
  CUgraphNode *captured = calloc(capture->count + 1, sizeof *captured);
  if (captured == NULL) return CUDA_ERROR_OUT_OF_MEMORY;
  if (capture->count > 0) memcpy(captured, capture->waits, capture->count * sizeof *captured);
  free(event->captured);
  event->captured = captured;
  event->captured_count = capture->count;
  event->capture_id = capture->session->id;
  return CUDA_SUCCESS;
}

CUresult capture_record_event(CUstream stream, CUevent event, unsigned int flags) {
  pthread_mutex_lock(&lock);
  CUresult result = stream->capture == NULL ? CUDA_ERROR_ILLEGAL_STATE : record_event(stream, event, flags);
  pthread_mutex_unlock(&lock);
  return result;
}

static CUresult wait_event(CUstream stream, CUevent event, unsigned int flags) {
  if (flags & CU_EVENT_WAIT_EXTERNAL) {
    struct task task = {.type = CU_GRAPH_NODE_TYPE_WAIT_EVENT, .event = event};
    return stream->capture == NULL ? CUDA_ERROR_ILLEGAL_STATE : add(stream, &task);
  }
  struct session *session = sessions;
  while (session != NULL && session->id != event->capture_id)
    session = session->next;
  if (session == NULL) {
    /* The event was recorded outside of the capture. A captured stream cannot wait for work outside of the graph. */
    if (stream->capture == NULL) return event->capture_id != 0 ? CUDA_ERROR_CAPTURED_EVENT : CUDA_SUCCESS;
    invalidate(stream->capture->session);
    return CUDA_ERROR_STREAM_CAPTURE_ISOLATION;
  }
  if (stream->capture == NULL) TRY(join(stream, session));
  if (stream->capture->session != session) {
    invalidate(session);
    invalidate(stream->capture->session);
    return CUDA_ERROR_STREAM_CAPTURE_MERGE;
  }
  return set_waits(stream->capture, event->captured, event->captured_count, true);
}

CUresult capture_wait_event(CUstream stream, CUevent event, unsigned int flags) {
  pthread_mutex_lock(&lock);
  CUresult result = wait_event(stream, event, flags);
  pthread_mutex_unlock(&lock);
  return result;
}

/* ---- begin and end of a capture ---- */

static CUresult begin(CUstream stream, CUstreamCaptureMode mode, CUgraph graph, const CUgraphNode *waits,
                      size_t count) {
  if (stream == stream->context->legacy) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  if (stream->capture != NULL) return CUDA_ERROR_ILLEGAL_STATE;
  NEED((unsigned int)mode <= CU_STREAM_CAPTURE_MODE_RELAXED);
  struct session *session = calloc(1, sizeof *session);
  if (session == NULL) return CUDA_ERROR_OUT_OF_MEMORY;
  session->id = atomic_fetch_add(&next_id, 1);
  session->mode = mode;
  session->thread = pthread_self();
  session->own_graph = graph == NULL;
  session->graph = graph != NULL ? graph : graph_make();
  session->given = graph != NULL ? graph->count : 0;
  session->origin = stream;
  CUresult joined = session->graph == NULL ? CUDA_ERROR_OUT_OF_MEMORY : join(stream, session);
  if (joined == CUDA_SUCCESS) joined = set_waits(stream->capture, waits, count, false);
  if (joined != CUDA_SUCCESS) {
    leave(stream);
    if (session->own_graph && session->graph != NULL) graph_free(session->graph);
    free(session);
    return joined;
  }
  session->next = sessions;
  sessions = session;
  atomic_fetch_add(&capture_sessions, 1);
  return CUDA_SUCCESS;
}

static void end_session(struct session *session) {
  CUstream streams[SIM_MAX_CHANNELS];
  for (CUcontext context = context_next(NULL); context != NULL; context = context_next(context)) {
    size_t count = stream_list(context, streams);
    for (size_t i = 0; i < count; i++)
      if (streams[i]->capture != NULL && streams[i]->capture->session == session) leave(streams[i]);
  }
  for (struct session **at = &sessions; *at != NULL; at = &(*at)->next) {
    if (*at != session) continue;
    *at = session->next;
    break;
  }
  atomic_fetch_sub(&capture_sessions, 1);
  free(session);
}

/* Whether captured work is not joined to the origin stream: every node without dependents must be a dependency of the
 * origin. */
static bool is_unjoined(const struct session *session) {
  const struct capture *origin = session->origin->capture;
  const CUgraph graph = session->graph;
  for (size_t i = session->given; i < graph->count; i++)
    graph->nodes[i]->mark = 0;
  for (size_t i = session->given; i < graph->count; i++)
    for (size_t d = 0; d < graph->nodes[i]->dependency_count; d++)
      graph->nodes[i]->dependencies[d]->mark = 1;
  for (size_t i = 0; i < origin->count; i++)
    origin->waits[i]->mark = 1;
  for (size_t i = session->given; i < graph->count; i++)
    if (graph->nodes[i]->mark == 0) return true;
  return false;
}

static CUresult end(CUstream stream, CUgraph *graph) {
  if (stream->capture == NULL) return CUDA_ERROR_ILLEGAL_STATE;
  struct session *session = stream->capture->session;
  if (session->origin != stream) return CUDA_ERROR_STREAM_CAPTURE_UNMATCHED;
  if (session->mode != CU_STREAM_CAPTURE_MODE_RELAXED && !pthread_equal(session->thread, pthread_self()))
    return CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
  CUresult result = session->invalid       ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED
                    : is_unjoined(session) ? CUDA_ERROR_STREAM_CAPTURE_UNJOINED
                                           : CUDA_SUCCESS;
  if (result == CUDA_SUCCESS)
    *graph = session->graph;
  else if (session->own_graph)
    graph_free(session->graph);
  end_session(session);
  return result;
}

void capture_abandon(CUstream stream) {
  pthread_mutex_lock(&lock);
  if (stream->capture != NULL) {
    struct session *session = stream->capture->session;
    if (session->origin == stream) {
      if (session->own_graph) graph_free(session->graph);
      end_session(session);
    } else {
      invalidate(session);
      leave(stream);
    }
  }
  pthread_mutex_unlock(&lock);
}

/* ---- API ---- */

SIM_API CUresult cuStreamBeginCapture_v2(CUstream handle, CUstreamCaptureMode mode) {
  CUstream stream;
  ENTER();
  TRY(stream_resolve(handle, &stream));
  pthread_mutex_lock(&lock);
  CUresult result = begin(stream, mode, NULL, NULL, 0);
  pthread_mutex_unlock(&lock);
  return result;
}
PER_THREAD_SZ(cuStreamBeginCapture_v2, (CUstream stream, CUstreamCaptureMode mode), own_stream(stream), mode)

SIM_API CUresult cuStreamBeginCapture(CUstream stream) {
  return cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL);
}
PER_THREAD_SZ(cuStreamBeginCapture, (CUstream stream), own_stream(stream))

SIM_API CUresult cuStreamBeginCaptureToGraph(CUstream handle, CUgraph graph, const CUgraphNode *waits,
                                             const CUgraphEdgeData *edges, size_t count, CUstreamCaptureMode mode) {
  CUstream stream;
  ENTER();
  (void)edges;
  TRY(graph_check(graph));
  NEED(count == 0 || waits != NULL);
  TRY(stream_resolve(handle, &stream));
  pthread_mutex_lock(&lock);
  CUresult result = begin(stream, mode, graph, waits, count);
  pthread_mutex_unlock(&lock);
  return result;
}
PER_THREAD_SZ(cuStreamBeginCaptureToGraph,
              (CUstream stream, CUgraph graph, const CUgraphNode *waits, const CUgraphEdgeData *edges, size_t count,
               CUstreamCaptureMode mode),
              own_stream(stream), graph, waits, edges, count, mode)

SIM_API CUresult cuStreamBeginRecaptureToGraph(CUstream stream, CUstreamCaptureMode mode, CUgraph graph,
                                               CUgraphRecaptureCallback differs, void *data) {
  (void)stream, (void)mode, (void)graph, (void)differs, (void)data;
  ENTER();
  return CUDA_ERROR_NOT_SUPPORTED;
}
PER_THREAD_SZ(cuStreamBeginRecaptureToGraph,
              (CUstream stream, CUstreamCaptureMode mode, CUgraph graph, CUgraphRecaptureCallback differs, void *data),
              own_stream(stream), mode, graph, differs, data)

SIM_API CUresult cuStreamEndCapture(CUstream handle, CUgraph *graph) {
  CUstream stream;
  ENTER();
  NEED(graph != NULL);
  *graph = NULL;
  TRY(stream_resolve(handle, &stream));
  pthread_mutex_lock(&lock);
  CUresult result = end(stream, graph);
  pthread_mutex_unlock(&lock);
  return result;
}
PER_THREAD_SZ(cuStreamEndCapture, (CUstream stream, CUgraph *graph), own_stream(stream), graph)

static CUstreamCaptureStatus status_of(CUstream stream) {
  if (stream->capture == NULL) return CU_STREAM_CAPTURE_STATUS_NONE;
  return stream->capture->session->invalid ? CU_STREAM_CAPTURE_STATUS_INVALIDATED : CU_STREAM_CAPTURE_STATUS_ACTIVE;
}

SIM_API CUresult cuStreamGetCaptureInfo_v3(CUstream handle, CUstreamCaptureStatus *status, cuuint64_t *id,
                                           CUgraph *graph, const CUgraphNode **waits, const CUgraphEdgeData **edges,
                                           size_t *count) {
  CUstream stream;
  ENTER();
  NEED(status != NULL);
  TRY(stream_resolve(handle, &stream));
  pthread_mutex_lock(&lock);
  CUresult result = is_awaited_by_legacy(stream) ? CUDA_ERROR_STREAM_CAPTURE_IMPLICIT : CUDA_SUCCESS;
  *status = status_of(stream);
  if (*status == CU_STREAM_CAPTURE_STATUS_ACTIVE) {
    if (id != NULL) *id = stream->capture->session->id;
    if (graph != NULL) *graph = stream->capture->session->graph;
    if (waits != NULL) *waits = stream->capture->waits;
    if (edges != NULL) *edges = NULL;
    if (count != NULL) *count = stream->capture->count;
  }
  pthread_mutex_unlock(&lock);
  return result;
}
PER_THREAD_SZ(cuStreamGetCaptureInfo_v3,
              (CUstream stream, CUstreamCaptureStatus *status, cuuint64_t *id, CUgraph *graph,
               const CUgraphNode **waits, const CUgraphEdgeData **edges, size_t *count),
              own_stream(stream), status, id, graph, waits, edges, count)

SIM_API CUresult cuStreamGetCaptureInfo_v2(CUstream stream, CUstreamCaptureStatus *status, cuuint64_t *id,
                                           CUgraph *graph, const CUgraphNode **waits, size_t *count) {
  return cuStreamGetCaptureInfo_v3(stream, status, id, graph, waits, NULL, count);
}
PER_THREAD_SZ(cuStreamGetCaptureInfo_v2,
              (CUstream stream, CUstreamCaptureStatus *status, cuuint64_t *id, CUgraph *graph,
               const CUgraphNode **waits, size_t *count),
              own_stream(stream), status, id, graph, waits, count)

SIM_API CUresult cuStreamGetCaptureInfo(CUstream stream, CUstreamCaptureStatus *status, cuuint64_t *id) {
  return cuStreamGetCaptureInfo_v3(stream, status, id, NULL, NULL, NULL, NULL);
}
PER_THREAD_SZ(cuStreamGetCaptureInfo, (CUstream stream, CUstreamCaptureStatus *status, cuuint64_t *id),
              own_stream(stream), status, id)

SIM_API CUresult cuStreamIsCapturing(CUstream stream, CUstreamCaptureStatus *status) {
  return cuStreamGetCaptureInfo_v3(stream, status, NULL, NULL, NULL, NULL, NULL);
}
PER_THREAD_SZ(cuStreamIsCapturing, (CUstream stream, CUstreamCaptureStatus *status), own_stream(stream), status)

SIM_API CUresult cuStreamUpdateCaptureDependencies_v2(CUstream handle, CUgraphNode *nodes, const CUgraphEdgeData *edges,
                                                      size_t count, unsigned int flags) {
  CUstream stream;
  ENTER();
  (void)edges;
  NEED((count == 0 || nodes != NULL) && flags <= CU_STREAM_SET_CAPTURE_DEPENDENCIES);
  TRY(stream_resolve(handle, &stream));
  pthread_mutex_lock(&lock);
  CUresult result = status_of(stream) != CU_STREAM_CAPTURE_STATUS_ACTIVE
                        ? CUDA_ERROR_ILLEGAL_STATE
                        : set_waits(stream->capture, nodes, count, flags == CU_STREAM_ADD_CAPTURE_DEPENDENCIES);
  pthread_mutex_unlock(&lock);
  return result;
}
PER_THREAD_SZ(cuStreamUpdateCaptureDependencies_v2,
              (CUstream stream, CUgraphNode *nodes, const CUgraphEdgeData *edges, size_t count, unsigned int flags),
              own_stream(stream), nodes, edges, count, flags)

SIM_API CUresult cuStreamUpdateCaptureDependencies(CUstream stream, CUgraphNode *nodes, size_t count,
                                                   unsigned int flags) {
  return cuStreamUpdateCaptureDependencies_v2(stream, nodes, NULL, count, flags);
}
PER_THREAD_SZ(cuStreamUpdateCaptureDependencies,
              (CUstream stream, CUgraphNode *nodes, size_t count, unsigned int flags), own_stream(stream), nodes, count,
              flags)

SIM_API CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode *mode) {
  ENTER();
  NEED(mode != NULL && (unsigned int)*mode <= CU_STREAM_CAPTURE_MODE_RELAXED);
  CUstreamCaptureMode before = thread.capture_mode;
  thread.capture_mode = *mode;
  *mode = before;
  return CUDA_SUCCESS;
}
