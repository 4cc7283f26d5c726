#include "sim.h"

int main(void) {
  CUgraph graph, nested;
  CUgraphExec exec, outer_exec;
  size_t nodes = 0, edges = 0;
  TEST_BEGIN("captured work becomes a graph that keeps its order and overlaps independent branches");
  sim_jump();
  sim_begin();
  CUstream a = sim_stream(CU_STREAM_NON_BLOCKING), b = sim_stream(CU_STREAM_NON_BLOCKING);
  CUevent fork = sim_event(), join = sim_event();

  OK(cuStreamBeginCapture_v2(a, CU_STREAM_CAPTURE_MODE_GLOBAL));
  sim_launch(a, 10, 100);
  OK(cuEventRecord(fork, a));
  OK(cuStreamWaitEvent(b, fork, 0));
  sim_launch(a, 10, 300);
  sim_launch(b, 10, 200);
  OK(cuEventRecord(join, b));
  OK(cuStreamWaitEvent(a, join, 0));
  sim_launch(a, 10, 50);
  CUstreamCaptureStatus status;
  OK(cuStreamIsCapturing(b, &status));
  CHECK_EQ(status, CU_STREAM_CAPTURE_STATUS_ACTIVE);
  OK(cuStreamEndCapture(a, &graph));
  OK(cuStreamIsCapturing(b, &status));
  CHECK_EQ(status, CU_STREAM_CAPTURE_STATUS_NONE);
  OK(cuGraphGetNodes(graph, NULL, &nodes));
  CHECK_EQ(nodes, 4);
  OK(cuGraphGetEdges_v2(graph, NULL, NULL, NULL, &edges));
  CHECK_EQ(edges, 4);

  /* No work has run so far. Three launches take three times 450 us, because the branches overlap. */
  CUevent begin = sim_mark(a);
  OK(cuEventSynchronize(begin));
  OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
  for (int i = 0; i < 3; i++)
    OK(cuGraphLaunch(exec, a));
  CUevent end = sim_mark(a);
  OK(cuStreamSynchronize(a));
  CHECK_BETWEEN(sim_elapsed_us(begin, end), 1349, 1351);
  CHECK_EQ(cuStreamQuery(b), CUDA_SUCCESS);

  /* One graph in two streams does not overlap with itself; as a child graph it takes the same time. */
  CUgraphNode child, after;
  uint64_t us = 20;
  void *parameters[] = {&us};
  CUDA_KERNEL_NODE_PARAMS_v2 kernel = {.func = sim_function("busy_us"),
                                       .gridDimX = 1,
                                       .gridDimY = 1,
                                       .gridDimZ = 1,
                                       .blockDimX = 1,
                                       .blockDimY = 1,
                                       .blockDimZ = 1,
                                       .kernelParams = parameters};
  OK(cuEventRecord(begin, a));
  OK(cuGraphLaunch(exec, a));
  OK(cuGraphLaunch(exec, b));
  OK(cuEventRecord(end, b));
  OK(cuCtxSynchronize());
  CHECK_BETWEEN(sim_elapsed_us(begin, end), 899, 901);
  OK(cuGraphCreate(&nested, 0));
  OK(cuGraphAddChildGraphNode(&child, nested, NULL, 0, graph));
  OK(cuGraphAddKernelNode_v2(&after, nested, &child, 1, &kernel));
  OK(cuGraphInstantiateWithFlags(&outer_exec, nested, 0));
  OK(cuEventRecord(begin, a));
  OK(cuGraphLaunch(outer_exec, a));
  OK(cuEventRecord(end, a));
  OK(cuCtxSynchronize());
  CHECK_BETWEEN(sim_elapsed_us(begin, end), 469, 471);

  OK(cuGraphExecDestroy(outer_exec));
  OK(cuGraphExecDestroy(exec));
  OK(cuGraphDestroy(nested));
  OK(cuGraphDestroy(graph));
  CUevent events[] = {fork, join, begin, end};
  for (int i = 0; i < 4; i++)
    OK(cuEventDestroy_v2(events[i]));
  sim_end();
  return TEST_END;
}
