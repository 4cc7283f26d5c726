#include "gpu.h"

int main(void) {
  TEST_BEGIN("launches into a capture are not charged, launches of the graph are, and captures stay sound");
  TEST_NOT_WRAPPED("what launches cost is measured");
  sandbox_make();
  sandbox_limits(gpu_uuid(), 256 * MIB, 90, 0);
  gpu_open();
  struct vgpu_usage *usage = sandbox_usage();
  CUfunction kernel = gpu_kernel("busy_us_200");
  CUstream stream, other;
  CUgraph graph;
  CUgraphExec exec;
  size_t nodes = 0;
  OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  OK(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
  OK(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
  for (int i = 0; i < 50; i++)
    OK(gpu_launch(kernel, 80, stream));
  CHECK_EQ(usage->devices[0].charged_ns, 0);
  OK(cuStreamEndCapture(stream, &graph));
  OK(cuGraphGetNodes(graph, NULL, &nodes));
  CHECK_EQ(nodes, 50);
  OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
  for (int i = 0; i < 10; i++) {
    OK(cuGraphLaunch(exec, stream));
    OK(cuStreamSynchronize(stream));
  }
  /* The next launch collects the sample of the last one. 50 kernels of 200 us are 10 ms per launch. */
  OK(cuGraphLaunch(exec, stream));
  OK(cuStreamSynchronize(stream));
  CHECK_BETWEEN(usage->devices[0].charged_ns, 95000000, 125000000);

  /* Launches on other streams are charged during the capture. */
  uint64_t charged = usage->devices[0].charged_ns;
  OK(cuGraphExecDestroy(exec));
  OK(cuGraphDestroy(graph));
  OK(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
  for (int i = 0; i < 20; i++)
    OK(gpu_launch(kernel, 80, other));
  OK(cuStreamEndCapture(stream, &graph));
  CHECK(usage->devices[0].charged_ns > charged);
  OK(cuGraphDestroy(graph));
  CHECK(cuStreamEndCapture(stream, &graph) != CUDA_SUCCESS);
  OK(cuStreamSynchronize(other));
  return TEST_END;
}
