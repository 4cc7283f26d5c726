#include "sim.h"

static CUstream stream;

static CUDA_KERNEL_NODE_PARAMS_v2 kernel(void **parameters) {
  return (CUDA_KERNEL_NODE_PARAMS_v2){.func = sim_function("busy_us"),
                                      .gridDimX = 80,
                                      .gridDimY = 1,
                                      .gridDimZ = 1,
                                      .blockDimX = 32,
                                      .blockDimY = 1,
                                      .blockDimZ = 1,
                                      .kernelParams = parameters};
}

static double launched(CUgraphExec exec) {
  CUevent begin = sim_mark(stream);
  OK(cuGraphLaunch(exec, stream));
  CUevent end = sim_mark(stream);
  OK(cuStreamSynchronize(stream));
  double us = sim_elapsed_us(begin, end);
  OK(cuEventDestroy_v2(begin));
  OK(cuEventDestroy_v2(end));
  return us;
}

int main(void) {
  CUgraph graph, other;
  CUgraphNode first, second, copy, found;
  CUgraphExec exec;
  CUgraphExecUpdateResultInfo info;
  uint64_t us = 100;
  void *parameters[] = {&us};
  unsigned int enabled;
  TEST_BEGIN("executable graphs are updated: one node, all nodes from another graph, and disabled nodes");
  sim_jump();
  sim_begin();
  stream = sim_stream(CU_STREAM_NON_BLOCKING);
  CUDA_KERNEL_NODE_PARAMS_v2 node = kernel(parameters), told;
  OK(cuGraphCreate(&graph, 0));
  OK(cuGraphAddKernelNode_v2(&first, graph, NULL, 0, &node));
  us = 200; /* parameter values are copied when the node is created */
  OK(cuGraphAddKernelNode_v2(&second, graph, &first, 1, &node));
  OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
  us = 9999;
  CHECK_BETWEEN(launched(exec), 299, 301);
  OK(cuGraphKernelNodeGetParams_v2(second, &told));
  CHECK_EQ(told.gridDimX, 80);
  CHECK_EQ(*(uint64_t *)told.kernelParams[0], 200);

  us = 500;
  OK(cuGraphExecKernelNodeSetParams_v2(exec, first, &node));
  CHECK_BETWEEN(launched(exec), 699, 701);
  OK(cuGraphNodeSetEnabled(exec, first, 0));
  OK(cuGraphNodeGetEnabled(exec, first, &enabled));
  CHECK_EQ(enabled, 0);
  CHECK_BETWEEN(launched(exec), 199, 201);
  OK(cuGraphNodeSetEnabled(exec, first, 1));

  OK(cuGraphClone(&other, graph));
  OK(cuGraphNodeFindInClone(&copy, second, other));
  us = 1000;
  OK(cuGraphKernelNodeSetParams_v2(copy, &node));
  OK(cuGraphExecUpdate_v2(exec, other, &info));
  CHECK_EQ(info.result, CU_GRAPH_EXEC_UPDATE_SUCCESS);
  CHECK_BETWEEN(launched(exec), 1099, 1101);

  OK(cuGraphAddEmptyNode(&found, other, &copy, 1));
  CHECK_EQ(cuGraphExecUpdate_v2(exec, other, &info), CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE);
  CHECK_EQ(info.result, CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED);
  CHECK_BETWEEN(launched(exec), 1099, 1101);
  OK(cuGraphDestroyNode(found));
  CHECK_EQ(cuGraphAddDependencies_v2(other, &copy, &copy, NULL, 1), CUDA_ERROR_INVALID_VALUE);

  OK(cuGraphExecDestroy(exec));
  OK(cuGraphDestroy(other));
  OK(cuGraphDestroy(graph));
  sim_end();
  return TEST_END;
}
