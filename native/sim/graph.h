/*
 * Graphs: nodes, what they wait for, and what is made of them to be launched.
 */
#ifndef SIM_GRAPH_H
#define SIM_GRAPH_H

#include "task.h"
#include "user_object.h"

enum { GRAPH_MAGIC = 0x47524148, NODE_MAGIC = 0x4e4f4445, EXEC_MAGIC = 0x45584543 };

struct CUgraphNode_st {
  uint32_t magic;
  uint32_t mark; /* for walks over the graph */
  CUgraph graph;
  struct task task;
  CUgraphNode *dependencies; /* each in front of this one */
  size_t dependency_count;
  CUgraphNode original; /* of a clone */
  CUkernelNodeAttrValue attribute;
};

struct CUgraph_st {
  uint32_t magic;
  CUgraphNode *nodes;
  size_t count, room;
  struct user_objects objects;
};

/* A node of an executable graph. */
struct exec_node {
  CUgraphNode source; /* the node that it was made of, by which it is found again */
  struct task task;
  bool enabled;
  unsigned int lane;
  size_t *dependencies; /* places in the list, all before this one */
  size_t dependency_count;
};

struct CUgraphExec_st {
  uint32_t magic;
  CUgraph graph; /* the one that was instantiated; only compared, never followed */
  CUcontext context;
  unsigned long long flags;
  struct exec_node *nodes; /* each after all that it waits for */
  size_t count;
  unsigned int lanes;
  CUstream *streams; /* of lanes from 1 on; lane 0 is the stream of the launch */
  uint64_t *tickets; /* of the nodes, in the launch that is made */
  pthread_mutex_t lock;
  uint32_t last_channel; /* where the last launch ended: launches of one graph never overlap */
  uint64_t last_ticket;  /* 0: there was none */
  struct user_objects objects;
};

CUresult graph_check(CUgraph graph);
CUresult node_check(CUgraphNode node);

CUgraph graph_make(void);
void graph_free(CUgraph graph);

/* A node that waits for others of the same graph. */
CUresult graph_add(CUgraph graph, const CUgraphNode *dependencies, size_t count, const struct task *task,
                   CUgraphNode *node);

/* Lets `to` wait for `from` too. */
CUresult graph_connect(CUgraphNode from, CUgraphNode to);
bool graph_is_connected(CUgraphNode from, CUgraphNode to);

/* A copy whose nodes name their originals. NULL: no memory. */
CUgraph graph_clone(CUgraph graph);

/* The nodes, each after all that it waits for. NULL: there is a circle, or no memory. The caller frees it. */
CUgraphNode *graph_order(CUgraph graph);

CUresult exec_check(CUgraphExec exec);

/* Makes a graph executable in the current context. */
CUresult exec_make(CUgraph graph, unsigned long long flags, CUgraphExec *exec, CUgraphNode *wrong);
void exec_free(CUgraphExec exec);
CUresult exec_launch(CUgraphExec exec, CUstream stream);

/* The executable form of a node; NULL: none. */
struct exec_node *exec_find(CUgraphExec exec, CUgraphNode node);

#endif
