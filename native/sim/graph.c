#include "graph.h"

#include <stdlib.h>
#include <string.h>

CUresult graph_check(CUgraph graph) {
  return graph != NULL && graph->magic == GRAPH_MAGIC ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult node_check(CUgraphNode node) {
  return node != NULL && node->magic == NODE_MAGIC ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUgraph graph_make(void) {
  CUgraph graph = calloc(1, sizeof *graph);
  if (graph != NULL) graph->magic = GRAPH_MAGIC;
  return graph;
}

static void free_node(CUgraphNode node) {
  if (node->task.type == CU_GRAPH_NODE_TYPE_GRAPH && node->task.child.owned) graph_free(node->task.child.graph);
  node->magic = 0;
  free(node->dependencies);
  free(node);
}

void graph_free(CUgraph graph) {
  for (size_t i = 0; i < graph->count; i++)
    free_node(graph->nodes[i]);
  graph->magic = 0;
  user_objects_free(&graph->objects);
  free(graph->nodes);
  free(graph);
}

bool graph_is_connected(CUgraphNode from, CUgraphNode to) {
  for (size_t i = 0; i < to->dependency_count; i++)
    if (to->dependencies[i] == from) return true;
  return false;
}

CUresult graph_connect(CUgraphNode from, CUgraphNode to) {
  NEED(from != to && from->graph == to->graph && !graph_is_connected(from, to));
  CUgraphNode *larger = realloc(to->dependencies, (to->dependency_count + 1) * sizeof *larger);
  if (larger == NULL) return CUDA_ERROR_OUT_OF_MEMORY;
  to->dependencies = larger;
  to->dependencies[to->dependency_count++] = from;
  return CUDA_SUCCESS;
}

CUresult graph_add(CUgraph graph, const CUgraphNode *dependencies, size_t count, const struct task *task,
                   CUgraphNode *result) {
  NEED(count == 0 || dependencies != NULL);
  for (size_t i = 0; i < count; i++) {
    TRY(node_check(dependencies[i]));
    NEED(dependencies[i]->graph == graph);
  }
  if (graph->count == graph->room) {
    size_t room = graph->room == 0 ? 16 : 2 * graph->room;
    CUgraphNode *larger = realloc(graph->nodes, room * sizeof *larger);
    if (larger == NULL) return CUDA_ERROR_OUT_OF_MEMORY;
    graph->nodes = larger;
    graph->room = room;
  }
  CUgraphNode node = calloc(1, sizeof *node);
  if (node == NULL) return CUDA_ERROR_OUT_OF_MEMORY;
  node->magic = NODE_MAGIC;
  node->graph = graph;
  node->task = *task;
  CUresult connected = CUDA_SUCCESS;
  for (size_t i = 0; i < count && connected == CUDA_SUCCESS; i++)
    connected = graph_connect(dependencies[i], node);
  if (connected != CUDA_SUCCESS) {
    free(node->dependencies);
    free(node);
    return connected;
  }
  graph->nodes[graph->count++] = node;
  *result = node;
  return CUDA_SUCCESS;
}

static CUgraphNode clone_of(CUgraph clone, CUgraphNode original) {
  for (size_t i = 0; i < clone->count; i++)
    if (clone->nodes[i]->original == original) return clone->nodes[i];
  return NULL;
}

CUgraph graph_clone(CUgraph graph) {
  CUgraph clone = graph_make();
  if (clone != NULL && !user_objects_copy(&clone->objects, &graph->objects)) {
    graph_free(clone);
    return NULL;
  }
  for (size_t i = 0; clone != NULL && i < graph->count; i++) {
    CUgraphNode original = graph->nodes[i], node;
    struct task task = original->task;
    if (task.type == CU_GRAPH_NODE_TYPE_GRAPH) {
      task.child.graph = graph_clone(task.child.graph);
      task.child.owned = true;
    }
    if ((task.type == CU_GRAPH_NODE_TYPE_GRAPH && task.child.graph == NULL) ||
        graph_add(clone, NULL, 0, &task, &node) != CUDA_SUCCESS) {
      graph_free(clone);
      return NULL;
    }
    node->original = original;
    node->attribute = original->attribute;
  }
  for (size_t i = 0; clone != NULL && i < graph->count; i++)
    for (size_t d = 0; d < graph->nodes[i]->dependency_count; d++)
      graph_connect(clone_of(clone, graph->nodes[i]->dependencies[d]), clone->nodes[i]);
  return clone;
}

enum { UNSEEN, OPEN, CLOSED };

static bool visit(CUgraphNode node, CUgraphNode *order, size_t *count) {
  if (node->mark == CLOSED) return true;
  if (node->mark == OPEN) return false;
  node->mark = OPEN;
  for (size_t i = 0; i < node->dependency_count; i++)
    if (!visit(node->dependencies[i], order, count)) return false;
  node->mark = CLOSED;
  order[(*count)++] = node;
  return true;
}

CUgraphNode *graph_order(CUgraph graph) {
  CUgraphNode *order = calloc(graph->count + 1, sizeof *order);
  size_t count = 0;
  bool good = order != NULL;
  for (size_t i = 0; i < graph->count; i++)
    graph->nodes[i]->mark = UNSEEN;
  /* In the order of creation, so a graph captured from one stream keeps its order. */
  for (size_t i = 0; good && i < graph->count; i++)
    good = visit(graph->nodes[i], order, &count);
  if (good) return order;
  free(order);
  return NULL;
}
