#include "graph.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- graphs ---- */

SIM_API CUresult cuGraphCreate(CUgraph *graph, unsigned int flags) {
  ENTER();
  NEED(graph != NULL && flags == 0);
  *graph = graph_make();
  return *graph == NULL ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
}

SIM_API CUresult cuGraphDestroy(CUgraph graph) {
  ENTER();
  TRY(graph_check(graph));
  graph_free(graph);
  return CUDA_SUCCESS;
}

SIM_API CUresult cuGraphClone(CUgraph *clone, CUgraph graph) {
  ENTER();
  NEED(clone != NULL);
  TRY(graph_check(graph));
  *clone = graph_clone(graph);
  return *clone == NULL ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
}

SIM_API CUresult cuGraphNodeFindInClone(CUgraphNode *node, CUgraphNode original, CUgraph clone) {
  ENTER();
  NEED(node != NULL);
  TRY(node_check(original));
  TRY(graph_check(clone));
  for (size_t i = 0; i < clone->count; i++) {
    if (clone->nodes[i]->original != original) continue;
    *node = clone->nodes[i];
    return CUDA_SUCCESS;
  }
  return CUDA_ERROR_INVALID_VALUE;
}

SIM_API CUresult cuGraphDebugDotPrint(CUgraph graph, const char *path, unsigned int flags) {
  ENTER();
  (void)flags;
  NEED(path != NULL);
  TRY(graph_check(graph));
  FILE *file = fopen(path, "w");
  if (file == NULL) return CUDA_ERROR_OPERATING_SYSTEM;
  fprintf(file, "digraph {\n");
  for (size_t i = 0; i < graph->count; i++)
    graph->nodes[i]->mark = (uint32_t)i;
  for (size_t i = 0; i < graph->count; i++) {
    const struct CUgraphNode_st *node = graph->nodes[i];
    fprintf(file, "  n%zu [label=\"%zu: type %d\"];\n", i, i, (int)node->task.type);
    for (size_t d = 0; d < node->dependency_count; d++)
      fprintf(file, "  n%u -> n%zu;\n", node->dependencies[d]->mark, i);
  }
  fprintf(file, "}\n");
  return fclose(file) == 0 ? CUDA_SUCCESS : CUDA_ERROR_OPERATING_SYSTEM;
}

/* ---- traversal ---- */

/* List output as in CUDA: without a buffer only the count is returned; unused entries of the buffer are set to NULL. */
struct list {
  CUgraphNode *nodes, *others;
  CUgraphEdgeData *edges;
  size_t room, count;
};

static struct list list_of(CUgraphNode *nodes, CUgraphNode *others, CUgraphEdgeData *edges, const size_t *count) {
  return (struct list){.nodes = nodes, .others = others, .edges = edges, .room = nodes == NULL ? 0 : *count};
}

static void put(struct list *list, CUgraphNode node, CUgraphNode other) {
  if (list->count < list->room) {
    list->nodes[list->count] = node;
    if (list->others != NULL) list->others[list->count] = other;
    if (list->edges != NULL) memset(&list->edges[list->count], 0, sizeof list->edges[0]);
  }
  list->count++;
}

static CUresult finish(const struct list *list, size_t *count) {
  for (size_t i = list->count; i < list->room; i++) {
    list->nodes[i] = NULL;
    if (list->others != NULL) list->others[i] = NULL;
  }
  *count = list->room > 0 && list->room < list->count ? list->room : list->count;
  return CUDA_SUCCESS;
}

SIM_API CUresult cuGraphGetNodes(CUgraph graph, CUgraphNode *nodes, size_t *count) {
  ENTER();
  NEED(count != NULL);
  TRY(graph_check(graph));
  struct list list = list_of(nodes, NULL, NULL, count);
  for (size_t i = 0; i < graph->count; i++)
    put(&list, graph->nodes[i], NULL);
  return finish(&list, count);
}

SIM_API CUresult cuGraphGetRootNodes(CUgraph graph, CUgraphNode *nodes, size_t *count) {
  ENTER();
  NEED(count != NULL);
  TRY(graph_check(graph));
  struct list list = list_of(nodes, NULL, NULL, count);
  for (size_t i = 0; i < graph->count; i++)
    if (graph->nodes[i]->dependency_count == 0) put(&list, graph->nodes[i], NULL);
  return finish(&list, count);
}

SIM_API CUresult cuGraphGetEdges_v2(CUgraph graph, CUgraphNode *from, CUgraphNode *to, CUgraphEdgeData *edges,
                                    size_t *count) {
  ENTER();
  NEED(count != NULL && (from == NULL) == (to == NULL));
  TRY(graph_check(graph));
  struct list list = list_of(from, to, edges, count);
  for (size_t i = 0; i < graph->count; i++)
    for (size_t d = 0; d < graph->nodes[i]->dependency_count; d++)
      put(&list, graph->nodes[i]->dependencies[d], graph->nodes[i]);
  return finish(&list, count);
}

SIM_API CUresult cuGraphGetEdges(CUgraph graph, CUgraphNode *from, CUgraphNode *to, size_t *count) {
  return cuGraphGetEdges_v2(graph, from, to, NULL, count);
}

SIM_API CUresult cuGraphNodeGetDependencies_v2(CUgraphNode node, CUgraphNode *nodes, CUgraphEdgeData *edges,
                                               size_t *count) {
  ENTER();
  NEED(count != NULL);
  TRY(node_check(node));
  struct list list = list_of(nodes, NULL, edges, count);
  for (size_t i = 0; i < node->dependency_count; i++)
    put(&list, node->dependencies[i], NULL);
  return finish(&list, count);
}

SIM_API CUresult cuGraphNodeGetDependencies(CUgraphNode node, CUgraphNode *nodes, size_t *count) {
  return cuGraphNodeGetDependencies_v2(node, nodes, NULL, count);
}

SIM_API CUresult cuGraphNodeGetDependentNodes_v2(CUgraphNode node, CUgraphNode *nodes, CUgraphEdgeData *edges,
                                                 size_t *count) {
  ENTER();
  NEED(count != NULL);
  TRY(node_check(node));
  struct list list = list_of(nodes, NULL, edges, count);
  for (size_t i = 0; i < node->graph->count; i++)
    if (graph_is_connected(node, node->graph->nodes[i])) put(&list, node->graph->nodes[i], NULL);
  return finish(&list, count);
}

SIM_API CUresult cuGraphNodeGetDependentNodes(CUgraphNode node, CUgraphNode *nodes, size_t *count) {
  return cuGraphNodeGetDependentNodes_v2(node, nodes, NULL, count);
}

SIM_API CUresult cuGraphNodeGetType(CUgraphNode node, CUgraphNodeType *type) {
  ENTER();
  NEED(type != NULL);
  TRY(node_check(node));
  *type = node->task.type;
  return CUDA_SUCCESS;
}

/* ---- edges ---- */

static CUresult check_edges(CUgraph graph, const CUgraphNode *from, const CUgraphNode *to, size_t count) {
  TRY(graph_check(graph));
  NEED(count == 0 || (from != NULL && to != NULL));
  for (size_t i = 0; i < count; i++) {
    TRY(node_check(from[i]));
    TRY(node_check(to[i]));
    NEED(from[i]->graph == graph && to[i]->graph == graph);
  }
  return CUDA_SUCCESS;
}

SIM_API CUresult cuGraphAddDependencies_v2(CUgraph graph, const CUgraphNode *from, const CUgraphNode *to,
                                           const CUgraphEdgeData *edges, size_t count) {
  ENTER();
  (void)edges;
  TRY(check_edges(graph, from, to, count));
  for (size_t i = 0; i < count; i++)
    TRY(graph_connect(from[i], to[i]));
  return CUDA_SUCCESS;
}

SIM_API CUresult cuGraphAddDependencies(CUgraph graph, const CUgraphNode *from, const CUgraphNode *to, size_t count) {
  return cuGraphAddDependencies_v2(graph, from, to, NULL, count);
}

static bool disconnect(CUgraphNode from, CUgraphNode to) {
  for (size_t i = 0; i < to->dependency_count; i++) {
    if (to->dependencies[i] != from) continue;
    to->dependency_count--;
    memmove(&to->dependencies[i], &to->dependencies[i + 1], (to->dependency_count - i) * sizeof to->dependencies[0]);
    return true;
  }
  return false;
}

SIM_API CUresult cuGraphRemoveDependencies_v2(CUgraph graph, const CUgraphNode *from, const CUgraphNode *to,
                                              const CUgraphEdgeData *edges, size_t count) {
  ENTER();
  (void)edges;
  TRY(check_edges(graph, from, to, count));
  for (size_t i = 0; i < count; i++)
    NEED(disconnect(from[i], to[i]));
  return CUDA_SUCCESS;
}

SIM_API CUresult cuGraphRemoveDependencies(CUgraph graph, const CUgraphNode *from, const CUgraphNode *to,
                                           size_t count) {
  return cuGraphRemoveDependencies_v2(graph, from, to, NULL, count);
}

SIM_API CUresult cuGraphDestroyNode(CUgraphNode node) {
  ENTER();
  TRY(node_check(node));
  CUgraph graph = node->graph;
  size_t at = graph->count;
  for (size_t i = 0; i < graph->count; i++) {
    disconnect(node, graph->nodes[i]);
    if (graph->nodes[i] == node) at = i;
  }
  graph->count--;
  memmove(&graph->nodes[at], &graph->nodes[at + 1], (graph->count - at) * sizeof graph->nodes[0]);
  if (node->task.type == CU_GRAPH_NODE_TYPE_GRAPH && node->task.child.owned) graph_free(node->task.child.graph);
  node->magic = 0;
  free(node->dependencies);
  free(node);
  return CUDA_SUCCESS;
}

/* ---- user objects ---- */

SIM_API CUresult cuGraphRetainUserObject(CUgraph graph, CUuserObject object, unsigned int count, unsigned int flags) {
  ENTER();
  TRY(graph_check(graph));
  NEED((flags & ~(unsigned int)CU_GRAPH_USER_OBJECT_MOVE) == 0);
  return user_objects_hold(&graph->objects, object, count, (flags & CU_GRAPH_USER_OBJECT_MOVE) != 0);
}

SIM_API CUresult cuGraphReleaseUserObject(CUgraph graph, CUuserObject object, unsigned int count) {
  ENTER();
  TRY(graph_check(graph));
  return user_objects_drop(&graph->objects, object, count);
}
