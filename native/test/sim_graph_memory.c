#include "sim.h"

static const size_t MIB = 1 << 20;

static uint64_t attribute(CUgraphMem_attribute which) {
  cuuint64_t value = 0;
  OK(cuDeviceGetGraphMemAttribute(0, which, &value));
  return value;
}

int main(void) {
  CUgraph graph, captured;
  CUgraphNode allocate, release;
  CUgraphExec exec, too_large;
  TEST_BEGIN("memory of graphs is charged when a launch first needs it, and kept until it is trimmed");
  sim_jump();
  sim_begin();
  CUstream stream = sim_stream(CU_STREAM_NON_BLOCKING);
  CUDA_MEM_ALLOC_NODE_PARAMS_v1 memory = {
      .poolProps = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED, .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}},
      .bytesize = 100 * MIB};
  size_t before = sim_free_bytes();
  OK(cuGraphCreate(&graph, 0));
  OK(cuGraphAddMemAllocNode(&allocate, graph, NULL, 0, &memory));
  CHECK(memory.dptr != 0);
  OK(cuGraphAddMemFreeNode(&release, graph, &allocate, 1, memory.dptr));
  OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
  CHECK_EQ(sim_free_bytes(), before);
  OK(cuGraphLaunch(exec, stream));
  CHECK_EQ(before - sim_free_bytes(), 100 * MIB);
  CHECK_EQ(attribute(CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT), 0);
  CHECK_EQ(attribute(CU_GRAPH_MEM_ATTR_USED_MEM_HIGH), 100 * MIB);
  OK(cuGraphLaunch(exec, stream));
  CHECK_EQ(before - sim_free_bytes(), 100 * MIB);
  OK(cuDeviceGraphMemTrim(0));
  CHECK_EQ(sim_free_bytes(), before);

  /* Captured allocations behave the same; memory freed outside of the graph is allocated again by the next launch. */
  CUdeviceptr pointer;
  OK(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
  OK(cuMemAllocAsync(&pointer, 50 * MIB, stream));
  sim_launch(stream, 1, 10);
  OK(cuStreamEndCapture(stream, &captured));
  OK(cuGraphExecDestroy(exec));
  OK(cuGraphInstantiateWithFlags(&exec, captured, 0));
  OK(cuGraphLaunch(exec, stream));
  CHECK_EQ(before - sim_free_bytes(), 50 * MIB);
  CHECK_EQ(cuGraphLaunch(exec, stream), CUDA_ERROR_INVALID_VALUE);
  OK(cuMemFreeAsync(pointer, stream));
  OK(cuGraphLaunch(exec, stream));
  OK(cuMemFree_v2(pointer));
  OK(cuDeviceGraphMemTrim(0));
  CHECK_EQ(sim_free_bytes(), before);

  OK(cuGraphDestroy(graph));
  OK(cuGraphCreate(&graph, 0));
  memory.bytesize = before + 2 * MIB;
  OK(cuGraphAddMemAllocNode(&allocate, graph, NULL, 0, &memory));
  OK(cuGraphInstantiateWithFlags(&too_large, graph, 0));
  CHECK_EQ(cuGraphLaunch(too_large, stream), CUDA_ERROR_OUT_OF_MEMORY);
  CHECK_EQ(sim_free_bytes(), before);
  OK(cuGraphExecDestroy(too_large));
  OK(cuGraphExecDestroy(exec));
  OK(cuGraphDestroy(graph));
  OK(cuGraphDestroy(captured));
  sim_end();
  return TEST_END;
}
