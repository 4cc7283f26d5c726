#include "gpu.h"

static CUgraph with_allocation(size_t bytes, CUdeviceptr *pointer) {
  CUgraph graph;
  CUgraphNode allocate, release;
  CUDA_MEM_ALLOC_NODE_PARAMS parameters = {
      .poolProps = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED, .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}},
      .bytesize = bytes,
  };
  OK(cuGraphCreate(&graph, 0));
  OK(cuGraphAddMemAllocNode(&allocate, graph, NULL, 0, &parameters));
  OK(cuGraphAddMemFreeNode(&release, graph, &allocate, 1, parameters.dptr));
  *pointer = parameters.dptr;
  return graph;
}

int main(void) {
  TEST_BEGIN("memory that graphs allocate is charged and limited at their launch");
  sandbox_make();
  sandbox_limits(gpu_uuid(), 256 * MIB, 100, 0);
  gpu_open();
  CUdeviceptr pointer, linear;
  CUstream stream;
  OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  CUgraph graph = with_allocation(100 * MIB, &pointer);
  CUgraphExec exec;
  OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
  for (int i = 0; i < 5; i++)
    OK(cuGraphLaunch(exec, stream));
  OK(cuStreamSynchronize(stream));
  cuuint64_t reserved;
  OK(cuDeviceGetGraphMemAttribute(0, CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT, &reserved));
  CHECK_EQ(gpu_held(), reserved);
  CHECK(reserved >= 100 * MIB);

  /* Unused memory of graphs is trimmed before an allocation is refused. */
  OK(cuMemAlloc_v2(&linear, 200 * MIB));
  CHECK(gpu_held() <= 256 * MIB);
  CHECK_EQ(cuGraphLaunch(exec, stream), CUDA_ERROR_OUT_OF_MEMORY);
  CHECK_EQ(gpu_denied(VGPU_DENIED_GRAPH), 1);
  OK(cuMemFree_v2(linear));
  OK(cuGraphLaunch(exec, stream));
  OK(cuStreamSynchronize(stream));
  OK(cuDeviceGraphMemTrim(0));
  CHECK_EQ(gpu_held(), 0);
  OK(cuGraphExecDestroy(exec));
  OK(cuGraphDestroy(graph));

  /* The same through capture. */
  CUgraph captured;
  OK(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
  OK(cuMemAllocAsync(&pointer, 300 * MIB, stream));
  OK(cuMemFreeAsync(pointer, stream));
  OK(cuStreamEndCapture(stream, &captured));
  CHECK_EQ(gpu_held(), 0);
  OK(cuGraphInstantiateWithFlags(&exec, captured, 0));
  CHECK_EQ(cuGraphLaunch(exec, stream), CUDA_ERROR_OUT_OF_MEMORY);
  CHECK_EQ(gpu_held(), 0);
  OK(cuGraphExecDestroy(exec));
  OK(cuGraphDestroy(captured));
  return TEST_END;
}
