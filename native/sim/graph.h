/* Graphs: nodes, their dependencies, and executable graphs. */
#ifndef SIM_GRAPH_H
#define SIM_GRAPH_H

#include "task.h"
#include "user_object.h"

enum { GRAPH_MAGIC = 0x47524148, NODE_MAGIC = 0x4e4f4445, EXEC_MAGIC = 0x45584543 };

struct CUgraphNode_st {
  uint32_t magic;
  uint32_t mark; /* used by traversals */
  CUgraph graph;
  struct task task;
  CUgraphNode *dependencies; /* each in front of this one */
  size_t dependency_count;
  CUgraphNode original; /* of a cloned node */
  CUkernelNodeAttrValue attribute;
};

struct CUgraph_st {
  uint32_t magic;
  CUgraphNode *nodes;
  size_t count, room;
  struct user_objects objects;
};

enum { EXEC_LANES = 32 };

/* The stream in which nodes of one context run. Lane 0 belongs to the context of the graph. */
struct lane {
  CUcontext context;
  CUstream stream; /* lane 0: only during a launch */
  CUevent event;   /* lets lanes of other GPUs wait; NULL: not needed so far */
};

/* A node of an executable graph. */
struct exec_node {
  CUgraphNode source; /* the node that it was instantiated from, used to find it */
  struct task task;
  bool enabled;
  CUcontext context; /* where it runs; an executable graph cannot change it */
  unsigned int lane;
  size_t *dependencies; /* indices into the list, all smaller than this node's */
  size_t dependency_count;
};

struct CUgraphExec_st {
  uint32_t magic;
  CUgraph graph;     /* the instantiated graph; only compared, never dereferenced */
  CUcontext context; /* current at the instantiation; nodes without a context run in it */
  unsigned long long flags;
  struct exec_node *nodes; /* in topological order */
  size_t count;
  unsigned int lanes;
  struct lane lane[EXEC_LANES];
  struct lane from;  /* of the current launch: its stream */
  CUstream home;     /* replaces the launch stream in lane 0 if that has another context; NULL: not needed so far */
  uint64_t *tickets; /* tickets of the nodes in the current launch */
  pthread_mutex_t lock;
  /* End of the last launch: launches of one graph do not overlap. */
  uint32_t last_gpu, last_channel;
  uint64_t last_ticket; /* 0: never launched */
  CUevent ended;        /* recorded there, for a next launch on another GPU; NULL: the process sees one GPU */
  struct user_objects objects;
};

CUresult graph_check(CUgraph graph);
CUresult node_check(CUgraphNode node);

CUgraph graph_make(void);
void graph_free(CUgraph graph);

/* Adds a node with dependencies in the same graph. */
CUresult graph_add(CUgraph graph, const CUgraphNode *dependencies, size_t count, const struct task *task,
                   CUgraphNode *node);

/* Adds a dependency of `to` on `from`. */
CUresult graph_connect(CUgraphNode from, CUgraphNode to);
bool graph_is_connected(CUgraphNode from, CUgraphNode to);

/* A copy whose nodes refer to their originals. NULL: out of memory. */
CUgraph graph_clone(CUgraph graph);

/* The nodes in topological order; the caller frees the list. NULL: the graph has a cycle, or out of memory. */
CUgraphNode *graph_order(CUgraph graph);

CUresult exec_check(CUgraphExec exec);

/* Instantiates a graph in the current context. */
CUresult exec_make(CUgraph graph, unsigned long long flags, CUgraphExec *exec, CUgraphNode *wrong);
void exec_free(CUgraphExec exec);
CUresult exec_launch(CUgraphExec exec, CUstream stream);

/* The executable node of a graph node; NULL: none. */
struct exec_node *exec_find(CUgraphExec exec, CUgraphNode node);

#endif
