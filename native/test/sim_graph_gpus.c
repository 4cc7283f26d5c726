#include "sim_nvml.h"

/* A stream may notice this late that another GPU has reached an event (sim/README.md). */
#define LATE_US 60

/* One context, stream and kernel of 1 ms per GPU. The kernel occupies its whole GPU. */
static CUcontext contexts[2];
static CUstream streams[2];
static CUfunction kernels[2];
static uint64_t us = 1000;

static void open_gpu(int gpu) {
  CUmodule module;
  OK(cuCtxCreate_v2(&contexts[gpu], 0, gpu));
  OK(cuModuleLoadData(&module, sim_ptx));
  OK(cuModuleGetFunction(&kernels[gpu], module, "busy_us"));
  OK(cuStreamCreate(&streams[gpu], CU_STREAM_NON_BLOCKING));
}

static CUgraphNode add(CUgraph graph, int gpu, CUgraphNode before) {
  CUgraphNode node;
  void *parameters[] = {&us};
  CUDA_KERNEL_NODE_PARAMS_v2 kernel = {.func = kernels[gpu],
                                       .gridDimX = 4096,
                                       .gridDimY = 1,
                                       .gridDimZ = 1,
                                       .blockDimX = 1,
                                       .blockDimY = 1,
                                       .blockDimZ = 1,
                                       .kernelParams = parameters};
  OK(cuGraphAddKernelNode_v2(&node, graph, &before, before == NULL ? 0 : 1, &kernel));
  return node;
}

static CUgraphExec executable(CUgraph graph) {
  CUgraphExec exec;
  OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
  OK(cuGraphDestroy(graph));
  return exec;
}

/* Time until `times` launches in a stream have ended. */
static double launch_us(CUgraphExec exec, int gpu, int times) {
  OK(cuCtxSetCurrent(contexts[gpu]));
  CUevent begin = sim_mark(streams[gpu]);
  OK(cuEventSynchronize(begin));
  for (int i = 0; i < times; i++)
    OK(cuGraphLaunch(exec, streams[gpu]));
  CUevent end = sim_mark(streams[gpu]);
  OK(cuStreamSynchronize(streams[gpu]));
  return sim_elapsed_us(begin, end);
}

static void check_nodes(void) {
  CUgraph side_by_side, chain, far;
  OK(cuGraphCreate(&side_by_side, 0));
  for (int gpu = 0; gpu < 2; gpu++)
    add(side_by_side, gpu, NULL);
  OK(cuGraphCreate(&chain, 0));
  add(chain, 0, add(chain, 1, add(chain, 0, NULL)));
  OK(cuGraphCreate(&far, 0));
  add(far, 1, NULL);
  CUgraphExec both = executable(side_by_side), turns = executable(chain), other = executable(far);
  for (int gpu = 0; gpu < 2; gpu++) {
    CHECK_BETWEEN(launch_us(both, gpu, 3), 2999, 3000 + 3 * LATE_US);
    CHECK_BETWEEN(launch_us(turns, gpu, 2), 5999, 6000 + 6 * LATE_US);
    CHECK_BETWEEN(launch_us(other, gpu, 1), 999, 1000 + LATE_US);
  }
  /* The GPU of the stream stays free for its own work. */
  OK(cuCtxSetCurrent(contexts[0]));
  CUevent begin = sim_mark(streams[0]);
  OK(cuEventSynchronize(begin));
  OK(cuGraphLaunch(other, streams[1]));
  OK(cuLaunchKernel(kernels[0], 4096, 1, 1, 1, 1, 1, 0, streams[0], (void *[]){&us}, NULL));
  CUevent end = sim_mark(streams[0]);
  OK(cuEventSynchronize(end));
  CHECK_BETWEEN(sim_elapsed_us(begin, end), 999, 1001);
  /* Launches of one graph do not overlap, also in streams of different GPUs. */
  OK(cuStreamSynchronize(streams[1]));
  OK(cuEventRecord(begin, streams[0]));
  OK(cuGraphLaunch(both, streams[1]));
  OK(cuGraphLaunch(both, streams[0]));
  OK(cuEventRecord(end, streams[0]));
  OK(cuEventSynchronize(end));
  CHECK_BETWEEN(sim_elapsed_us(begin, end), 1999, 2000 + LATE_US);
  OK(cuGraphExecDestroy(both));
  OK(cuGraphExecDestroy(turns));
  OK(cuGraphExecDestroy(other));
}

static void check_capture(void) {
  CUgraph graph;
  CUevent fork, join;
  OK(cuCtxSetCurrent(contexts[0]));
  OK(cuEventCreate(&fork, CU_EVENT_DISABLE_TIMING));
  OK(cuCtxSetCurrent(contexts[1]));
  OK(cuEventCreate(&join, CU_EVENT_DISABLE_TIMING));
  OK(cuStreamBeginCapture_v2(streams[0], CU_STREAM_CAPTURE_MODE_RELAXED));
  OK(cuEventRecord(fork, streams[0]));
  OK(cuStreamWaitEvent(streams[1], fork, 0));
  for (int gpu = 0; gpu < 2; gpu++)
    OK(cuLaunchKernel(kernels[gpu], 4096, 1, 1, 1, 1, 1, 0, streams[gpu], (void *[]){&us}, NULL));
  OK(cuEventRecord(join, streams[1]));
  OK(cuStreamWaitEvent(streams[0], join, 0));
  OK(cuStreamEndCapture(streams[0], &graph));
  CUgraphExec exec = executable(graph);
  CHECK_BETWEEN(launch_us(exec, 0, 4), 3999, 4000 + 4 * LATE_US);
  OK(cuGraphExecDestroy(exec));
}

int main(void) {
  TEST_BEGIN("each node of a graph runs on the GPU of its context, whichever stream the graph is launched in");
  sim_describe("{\"gpus\": [{}, {}], \"simulation\": {\"eventNs\": 0, \"switchUs\": 10, \"idleSwitchUs\": 10}}");
  sim_jump();
  OK(cuInit(0));
  for (int gpu = 0; gpu < 2; gpu++)
    open_gpu(gpu);
  check_nodes();
  check_capture();
  for (int gpu = 0; gpu < 2; gpu++)
    OK(cuCtxDestroy_v2(contexts[gpu]));
  return TEST_END;
}
