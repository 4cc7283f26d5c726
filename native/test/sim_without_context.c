#include "sim.h"

int main(void) {
  TEST_BEGIN("memory is freed without a current context, and calls that need one return an error");
  sim_begin();
  CUdeviceptr pointer;
  size_t before, after, total;
  OK(cuMemGetInfo_v2(&before, &total));
  OK(cuMemAlloc_v2(&pointer, (size_t)64 << 20));
  OK(cuProfilerStart());
  OK(cuProfilerStop());

  CUcontext context;
  OK(cuCtxGetCurrent(&context));
  OK(cuCtxSetCurrent(NULL));
  CHECK_EQ(cuProfilerStart(), CUDA_ERROR_INVALID_CONTEXT);
  CHECK_EQ(cuMemGetInfo_v2(&after, &total), CUDA_ERROR_INVALID_CONTEXT);
  OK(cuMemFree_v2(pointer));
  OK(cuCtxSetCurrent(context));
  OK(cuMemGetInfo_v2(&after, &total));
  CHECK_EQ(after, before);

  /* A graph that frees its memory before the next launch cannot be launched from kernels. */
  CUgraph graph;
  CUgraphExec exec;
  OK(cuGraphCreate(&graph, 0));
  CHECK_EQ(cuGraphInstantiateWithFlags(&exec, graph,
                                       CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH |
                                           CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH),
           CUDA_ERROR_INVALID_VALUE);
  OK(cuGraphInstantiateWithFlags(&exec, graph, CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH));

  int bytes;
  OK(cuFuncGetAttribute(&bytes, CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES, sim_function("busy_us")));
  CHECK(bytes > 0);
  return TEST_END;
}
