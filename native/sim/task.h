/*
 * A piece of work for a stream, whatever call it came from: pushed at once, or kept as a node of a graph and pushed
 * each time that the graph is launched.
 */
#ifndef SIM_TASK_H
#define SIM_TASK_H

#include "copy.h"
#include "kernel.h"
#include "stream.h"

struct task {
  CUgraphNodeType type;
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

/* Gives a task to a stream: to its capture where one is active, else to the GPU. */
CUresult task_submit(CUstream stream, const struct task *task);

/* Gives a task to the GPU. `ticket`: of its last operation, or of what stands before it when it needs none. */
CUresult task_push(CUstream stream, const struct task *task, uint64_t *ticket);

#endif
