/* A unit of work for a stream, independent of the API call: pushed at once, or stored in a graph node and pushed at
 * every launch of the graph. */
#ifndef SIM_TASK_H
#define SIM_TASK_H

#include "copy.h"
#include "kernel.h"
#include "stream.h"

struct task {
  CUgraphNodeType type;
  CUcontext context; /* of a graph node: where it runs; NULL: in the context of the graph */
  union {
    struct kernel_launch kernel;
    struct copy copy;
    struct fill fill;
    struct {
      CUhostFn function;
      void *data;
    } host;
    struct {
      CUgraph graph;
      bool owned;
    } child;
    CUevent event;
    CUDA_MEM_ALLOC_NODE_PARAMS_v1 alloc;
    CUdeviceptr free;
  };
};

/* Adds a task to the stream's capture if one is active, and otherwise pushes it. */
CUresult task_submit(CUstream stream, const struct task *task);

/* Pushes a task to the GPU. `ticket` is that of its last operation, or of the preceding operation if the task needs
 * none. */
CUresult task_push(CUstream stream, const struct task *task, uint64_t *ticket);

#endif
