#include "graph.h"

#include "capture.h"

#include "context.h"
#include "event.h"
#include "graph_memory.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_LANES = 16 };

CUresult exec_check(CUgraphExec exec) {
  return exec != NULL && exec->magic == EXEC_MAGIC ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

struct exec_node *exec_find(CUgraphExec exec, CUgraphNode node) {
  for (size_t i = 0; i < exec->count; i++)
    if (exec->nodes[i].source == node) return &exec->nodes[i];
  return NULL;
}

/* ---- flattening of nested graphs ---- */

/* Indices into the list of an executable graph. */
struct places {
  size_t *at;
  size_t count;
};

static bool add_place(struct places *places, size_t place) {
  for (size_t i = 0; i < places->count; i++)
    if (places->at[i] == place) return true;
  size_t *larger = realloc(places->at, (places->count + 1) * sizeof *larger);
  if (larger == NULL) return false;
  places->at = larger;
  places->at[places->count++] = place;
  return true;
}

static bool add_places(struct places *places, const struct places *more) {
  for (size_t i = 0; i < more->count; i++)
    if (!add_place(places, more->at[i])) return false;
  return true;
}

static bool append(CUgraphExec exec, CUgraphNode source, struct places *waits, struct places *ends) {
  struct exec_node *larger = realloc(exec->nodes, (exec->count + 1) * sizeof *larger);
  if (larger == NULL) return false;
  exec->nodes = larger;
  struct exec_node *node = &exec->nodes[exec->count];
  *node = (struct exec_node){.source = source,
                             .task = source->task,
                             .enabled = true,
                             .context = source->task.context != NULL ? source->task.context : exec->context,
                             .dependencies = waits->at,
                             .dependency_count = waits->count};
  *waits = (struct places){0};
  return add_place(ends, exec->count++);
}

static bool flatten(CUgraphExec exec, CUgraph graph, const struct places *before, struct places *ends);

/* Adds one node after its dependencies. `ends` receives the nodes that its dependents must wait for. */
static bool flatten_node(CUgraphExec exec, CUgraphNode node, const struct places *before, struct places *ends_of_nodes,
                         struct places *ends) {
  struct places waits = {0};
  bool good = add_places(&waits, before);
  for (size_t i = 0; good && i < node->dependency_count; i++)
    good = add_places(&waits, &ends_of_nodes[node->dependencies[i]->mark]);
  if (good && node->task.type == CU_GRAPH_NODE_TYPE_GRAPH) {
    good = flatten(exec, node->task.child.graph, &waits, ends);
    /* An empty child graph: its dependents wait for its dependencies. */
    if (good && ends->count == 0) good = add_places(ends, &waits);
  } else if (good) {
    good = append(exec, node, &waits, ends);
  }
  free(waits.at);
  return good;
}

static bool flatten(CUgraphExec exec, CUgraph graph, const struct places *before, struct places *ends) {
  CUgraphNode *order = graph_order(graph);
  struct places *ends_of_nodes = calloc(graph->count + 1, sizeof *ends_of_nodes);
  bool *awaited = calloc(graph->count + 1, sizeof *awaited);
  bool good = order != NULL && ends_of_nodes != NULL && awaited != NULL;
  for (size_t i = 0; good && i < graph->count; i++) {
    order[i]->mark = (uint32_t)i;
    for (size_t d = 0; d < order[i]->dependency_count; d++)
      awaited[order[i]->dependencies[d]->mark] = true;
    good = flatten_node(exec, order[i], before, ends_of_nodes, &ends_of_nodes[i]);
    /* A child graph is traversed with the same marks, but these belong to its own nodes. */
  }
  for (size_t i = 0; good && i < graph->count; i++)
    if (!awaited[i]) good = add_places(ends, &ends_of_nodes[i]);
  for (size_t i = 0; ends_of_nodes != NULL && i < graph->count; i++)
    free(ends_of_nodes[i].at);
  free(awaited);
  free(ends_of_nodes);
  free(order);
  return good;
}

/* ---- lanes: concurrent nodes, and nodes of different contexts, run on different streams ---- */

static unsigned int add_lane(CUgraphExec exec, CUcontext context) {
  struct lane *lane = &exec->lane[exec->lanes];
  if (stream_open(context, CU_STREAM_NON_BLOCKING, 0, &lane->stream) != CUDA_SUCCESS) return EXEC_LANES;
  lane->context = context;
  return exec->lanes++;
}

/* The lane of a node: that of a dependency which it continues, a new one, or one of its context. EXEC_LANES: none. */
static unsigned int choose_lane(CUgraphExec exec, const struct exec_node *node, const size_t *last) {
  for (size_t d = 0; d < node->dependency_count; d++) {
    unsigned int lane = exec->nodes[node->dependencies[d]].lane;
    if (last[lane] == node->dependencies[d] && exec->lane[lane].context == node->context) return lane;
  }
  unsigned int oldest = EXEC_LANES;
  for (unsigned int lane = 0; lane < exec->lanes; lane++) {
    if (exec->lane[lane].context != node->context) continue;
    if (last[lane] == SIZE_MAX) return lane;
    if (oldest == EXEC_LANES || last[lane] < last[oldest]) oldest = lane;
  }
  bool full = exec->lanes == EXEC_LANES || (oldest != EXEC_LANES && exec->lanes >= MAX_LANES);
  return full ? oldest : add_lane(exec, node->context);
}

static bool assign_lanes(CUgraphExec exec) {
  size_t last[EXEC_LANES] = {SIZE_MAX}; /* last node of each lane; SIZE_MAX: none */
  exec->lanes = 1;
  exec->lane[0].context = exec->context;
  for (size_t i = 0; i < exec->count; i++) {
    struct exec_node *node = &exec->nodes[i];
    node->lane = choose_lane(exec, node, last);
    if (node->lane == EXEC_LANES) return false;
    last[node->lane] = i;
  }
  return true;
}

static void free_nodes(struct exec_node *nodes, size_t count) {
  for (size_t i = 0; i < count; i++)
    free(nodes[i].dependencies);
  free(nodes);
}

CUresult exec_make(CUgraph graph, unsigned long long flags, CUgraphExec *result, CUgraphNode *wrong) {
  CUcontext context;
  struct places none = {0}, ends = {0};
  unsigned long long conflict =
      CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH | CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH;
  NEED((flags & conflict) != conflict);
  TRY(driver_current(&context));
  if (wrong != NULL) *wrong = NULL;
  CUgraphExec exec = calloc(1, sizeof *exec);
  if (exec == NULL) return CUDA_ERROR_OUT_OF_MEMORY;
  exec->magic = EXEC_MAGIC;
  exec->graph = graph;
  exec->context = context;
  exec->flags = flags;
  pthread_mutex_init(&exec->lock, NULL);
  bool good = flatten(exec, graph, &none, &ends) && user_objects_copy(&exec->objects, &graph->objects);
  free(ends.at);
  exec->tickets = good ? calloc(exec->count + 1, sizeof *exec->tickets) : NULL;
  if (driver.count > 1) good = good && event_open(context, CU_EVENT_DISABLE_TIMING, &exec->ended) == CUDA_SUCCESS;
  if (!good || exec->tickets == NULL || !assign_lanes(exec)) {
    exec_free(exec);
    return CUDA_ERROR_INVALID_VALUE;
  }
  *result = exec;
  return CUDA_SUCCESS;
}

static void close_lane(const struct lane *lane) {
  if (lane->event != NULL) cuEventDestroy_v2(lane->event);
  if (lane->stream != NULL && !lane->context->destroyed) stream_close(lane->stream);
}

void exec_free(CUgraphExec exec) {
  exec->lane[0].stream = exec->home;
  exec->from.stream = NULL;
  for (unsigned int i = 0; i < exec->lanes; i++) {
    const struct lane *lane = &exec->lane[i];
    /* A launch in progress may still use the objects, and wait for the event. */
    bool used = exec->last_ticket > 0 && (exec->objects.count > 0 || lane->event != NULL);
    if (used && !lane->context->destroyed) context_synchronize(lane->context);
  }
  user_objects_free(&exec->objects);
  for (unsigned int i = 0; i < exec->lanes; i++)
    close_lane(&exec->lane[i]);
  close_lane(&exec->from);
  if (exec->ended != NULL) cuEventDestroy_v2(exec->ended);
  exec->magic = 0;
  pthread_mutex_destroy(&exec->lock);
  free_nodes(exec->nodes, exec->count);
  free(exec->tickets);
  free(exec);
}

/* ---- launch ---- */

static void join_channel(CUstream stream, uint32_t channel, uint64_t ticket) {
  struct sim_op op = {.kind = SIM_JOIN, .channel = channel, .ticket = ticket};
  if (stream->channel != channel) stream_push(stream, &op);
}

/* Makes the stream wait for an operation of another one. A stream of another GPU can only wait for an event, so it
 * waits for everything that was pushed before. */
static CUresult join(CUstream stream, struct lane *other, uint64_t ticket) {
  if (atomic_load_explicit(&other->stream->queue->done, memory_order_acquire) >= ticket) return CUDA_SUCCESS;
  if (stream->context->gpu == other->stream->context->gpu) {
    join_channel(stream, other->stream->channel, ticket);
    return CUDA_SUCCESS;
  }
  if (other->event == NULL) TRY(event_open(other->context, CU_EVENT_DISABLE_TIMING, &other->event));
  TRY(event_record_in(other->stream, other->event));
  return event_wait_in(stream, other->event, 0);
}

static CUresult join_last_launch(CUgraphExec exec, CUstream stream) {
  if (exec->last_ticket == 0) return CUDA_SUCCESS;
  if (stream->context->gpu != exec->last_gpu) return event_wait_in(stream, exec->ended, 0);
  if (atomic_load(&stream->context->board->model.channels[exec->last_channel].done) < exec->last_ticket)
    join_channel(stream, exec->last_channel, exec->last_ticket);
  return CUDA_SUCCESS;
}

/* Memory of allocation nodes that is left from an earlier launch: freed if the flag requests it, otherwise an error. */
static CUresult clear_memory(CUgraphExec exec) {
  for (size_t i = 0; i < exec->count; i++) {
    const struct task *task = &exec->nodes[i].task;
    if (task->type != CU_GRAPH_NODE_TYPE_MEM_ALLOC || !graph_memory_is_mapped(task->alloc.dptr)) continue;
    NEED(exec->flags & CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH);
    TRY(graph_memory_unmap(task->alloc.dptr));
  }
  return CUDA_SUCCESS;
}

static CUresult begin(CUgraphExec exec, CUstream stream) {
  for (unsigned int lane = 0; lane < exec->lanes; lane++)
    if (exec->lane[lane].context->destroyed) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
  bool foreign = stream->context != exec->context;
  if (foreign && exec->home == NULL) TRY(stream_open(exec->context, CU_STREAM_NON_BLOCKING, 0, &exec->home));
  exec->lane[0].stream = foreign ? exec->home : stream;
  exec->from.context = stream->context;
  exec->from.stream = stream;
  TRY(clear_memory(exec));
  TRY(join_last_launch(exec, stream));
  uint64_t begin = stream_tail(stream);
  for (unsigned int lane = foreign ? 0 : 1; lane < exec->lanes; lane++)
    TRY(join(exec->lane[lane].stream, &exec->from, begin));
  return CUDA_SUCCESS;
}

static CUresult run(CUgraphExec exec, size_t i) {
  struct exec_node *node = &exec->nodes[i];
  CUstream own = exec->lane[node->lane].stream;
  for (size_t d = 0; d < node->dependency_count; d++) {
    size_t before = node->dependencies[d];
    if (exec->nodes[before].lane != node->lane)
      TRY(join(own, &exec->lane[exec->nodes[before].lane], exec->tickets[before]));
  }
  if (node->enabled) return task_push(own, &node->task, &exec->tickets[i]);
  exec->tickets[i] = stream_tail(own);
  return CUDA_SUCCESS;
}

static CUresult end(CUgraphExec exec, CUstream stream) {
  for (unsigned int i = 0; i < exec->lanes; i++) {
    struct lane *lane = &exec->lane[i];
    if (lane->stream != stream) TRY(join(stream, lane, stream_tail(lane->stream)));
  }
  if (exec->ended != NULL) TRY(event_record_in(stream, exec->ended));
  exec->last_gpu = stream->context->gpu;
  exec->last_channel = stream->channel;
  exec->last_ticket = stream_tail(stream);
  return CUDA_SUCCESS;
}

static CUresult launch(CUgraphExec exec, CUstream stream) {
  TRY(begin(exec, stream));
  for (size_t i = 0; i < exec->count; i++)
    TRY(run(exec, i));
  return end(exec, stream);
}

CUresult exec_launch(CUgraphExec exec, CUstream stream) {
  pthread_mutex_lock(&exec->lock);
  CUresult result = launch(exec, stream);
  pthread_mutex_unlock(&exec->lock);
  return result;
}

/* ---- API ---- */

SIM_API CUresult cuGraphInstantiateWithFlags(CUgraphExec *exec, CUgraph graph, unsigned long long flags) {
  ENTER();
  NEED(exec != NULL && flags <= 15);
  TRY(graph_check(graph));
  return exec_make(graph, flags, exec, NULL);
}

SIM_API CUresult cuGraphInstantiate_v2(CUgraphExec *exec, CUgraph graph, CUgraphNode *wrong, char *log, size_t size) {
  ENTER();
  NEED(exec != NULL);
  TRY(graph_check(graph));
  if (log != NULL && size > 0) log[0] = 0;
  return exec_make(graph, 0, exec, wrong);
}

SIM_API CUresult cuGraphInstantiate(CUgraphExec *exec, CUgraph graph, CUgraphNode *wrong, char *log, size_t size) {
  return cuGraphInstantiate_v2(exec, graph, wrong, log, size);
}

SIM_API CUresult cuGraphInstantiateWithParams(CUgraphExec *exec, CUgraph graph,
                                              CUDA_GRAPH_INSTANTIATE_PARAMS *parameters) {
  ENTER();
  NEED(exec != NULL && parameters != NULL && parameters->flags <= 15);
  TRY(graph_check(graph));
  CUresult result = exec_make(graph, parameters->flags, exec, &parameters->hErrNode_out);
  parameters->result_out =
      result == CUDA_SUCCESS ? CUDA_GRAPH_INSTANTIATE_SUCCESS : CUDA_GRAPH_INSTANTIATE_INVALID_STRUCTURE;
  return result;
}
PER_THREAD_SZ(cuGraphInstantiateWithParams,
              (CUgraphExec * exec, CUgraph graph, CUDA_GRAPH_INSTANTIATE_PARAMS *parameters), exec, graph, parameters)

SIM_API CUresult cuGraphExecGetFlags(CUgraphExec exec, cuuint64_t *flags) {
  ENTER();
  NEED(flags != NULL);
  TRY(exec_check(exec));
  *flags = exec->flags;
  return CUDA_SUCCESS;
}

SIM_API CUresult cuGraphExecDestroy(CUgraphExec exec) {
  ENTER();
  TRY(exec_check(exec));
  exec_free(exec);
  return CUDA_SUCCESS;
}

SIM_API CUresult cuGraphUpload(CUgraphExec exec, CUstream handle) {
  CUstream stream;
  ENTER();
  TRY(exec_check(exec));
  return stream_resolve(handle, &stream);
}
PER_THREAD_SZ(cuGraphUpload, (CUgraphExec exec, CUstream stream), exec, own_stream(stream))

SIM_API CUresult cuGraphLaunch(CUgraphExec exec, CUstream handle) {
  CUstream stream;
  ENTER();
  TRY(exec_check(exec));
  TRY(stream_resolve(handle, &stream));
  TRY(capture_refuses(stream));
  return exec_launch(exec, stream);
}
PER_THREAD_SZ(cuGraphLaunch, (CUgraphExec exec, CUstream stream), exec, own_stream(stream))

/* ---- updates of an executable graph ---- */

static CUgraphExecUpdateResult compare(const struct exec_node *a, const struct exec_node *b) {
  if (a->task.type != b->task.type) return CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED;
  if (a->dependency_count != b->dependency_count) return CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED;
  for (size_t i = 0; i < a->dependency_count; i++)
    if (a->dependencies[i] != b->dependencies[i]) return CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED;
  bool memory = a->task.type == CU_GRAPH_NODE_TYPE_MEM_ALLOC || a->task.type == CU_GRAPH_NODE_TYPE_MEM_FREE;
  return memory || a->task.context != b->task.context ? CU_GRAPH_EXEC_UPDATE_ERROR_NOT_SUPPORTED
                                                      : CU_GRAPH_EXEC_UPDATE_SUCCESS;
}

SIM_API CUresult cuGraphExecUpdate_v2(CUgraphExec exec, CUgraph graph, CUgraphExecUpdateResultInfo *info) {
  CUgraphExec fresh;
  ENTER();
  NEED(info != NULL);
  TRY(exec_check(exec));
  TRY(graph_check(graph));
  *info = (CUgraphExecUpdateResultInfo){.result = CU_GRAPH_EXEC_UPDATE_SUCCESS};
  TRY(exec_make(graph, exec->flags, &fresh, NULL));
  if (fresh->count != exec->count) info->result = CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED;
  for (size_t i = 0; i < exec->count && info->result == CU_GRAPH_EXEC_UPDATE_SUCCESS; i++) {
    info->result = compare(&exec->nodes[i], &fresh->nodes[i]);
    if (info->result != CU_GRAPH_EXEC_UPDATE_SUCCESS) info->errorNode = fresh->nodes[i].source;
  }
  if (info->result == CU_GRAPH_EXEC_UPDATE_SUCCESS) {
    pthread_mutex_lock(&exec->lock);
    for (size_t i = 0; i < exec->count; i++)
      exec->nodes[i].task = fresh->nodes[i].task;
    struct user_objects before = exec->objects;
    exec->objects = fresh->objects;
    fresh->objects = before;
    pthread_mutex_unlock(&exec->lock);
  }
  exec_free(fresh);
  return info->result == CU_GRAPH_EXEC_UPDATE_SUCCESS ? CUDA_SUCCESS : CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
}

SIM_API CUresult cuGraphExecUpdate(CUgraphExec exec, CUgraph graph, CUgraphNode *wrong, CUgraphExecUpdateResult *how) {
  CUgraphExecUpdateResultInfo info = {0};
  CUresult result = cuGraphExecUpdate_v2(exec, graph, &info);
  if (wrong != NULL) *wrong = info.errorNode;
  if (how != NULL) *how = info.result;
  return result;
}
