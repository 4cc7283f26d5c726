#include "sim.h"

#include <pthread.h>

static void *allocate_elsewhere(void *context) {
  CUdeviceptr pointer;
  OK(cuCtxSetCurrent(context));
  CUresult result = cuMemAlloc_v2(&pointer, 4096);
  if (result == CUDA_SUCCESS) OK(cuMemFree_v2(pointer));
  return (void *)(intptr_t)result;
}

/* The result of another thread's allocation while a stream captures in this mode, and the result of the capture. */
static void while_capturing(CUstream stream, CUstreamCaptureMode mode, CUresult allocation, CUresult capture) {
  pthread_t other;
  void *result;
  CUgraph graph = NULL;
  OK(cuStreamBeginCapture_v2(stream, mode));
  REQUIRE(pthread_create(&other, NULL, allocate_elsewhere, sim_context) == 0);
  REQUIRE(pthread_join(other, &result) == 0);
  CHECK_EQ((intptr_t)result, allocation);
  CHECK_EQ(cuStreamEndCapture(stream, &graph), capture);
  if (graph != NULL) OK(cuGraphDestroy(graph));
}

int main(void) {
  CUgraph graph = NULL;
  CUdeviceptr pointer;
  TEST_BEGIN("captures reject what CUDA rejects: queries, unsafe calls, the legacy stream, unjoined work");
  sim_jump();
  sim_begin();
  CUstream a = sim_stream(CU_STREAM_NON_BLOCKING), b = sim_stream(CU_STREAM_NON_BLOCKING);
  CUstream blocking = sim_stream(CU_STREAM_DEFAULT);
  CUevent event = sim_mark(b), outside = sim_mark(b);
  OK(cuCtxSynchronize());

  while_capturing(a, CU_STREAM_CAPTURE_MODE_GLOBAL, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED,
                  CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  while_capturing(a, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL, CUDA_SUCCESS, CUDA_SUCCESS);
  while_capturing(a, CU_STREAM_CAPTURE_MODE_RELAXED, CUDA_SUCCESS, CUDA_SUCCESS);

  /* A query of an unrelated event invalidates the capture, unless the thread's mode is relaxed. */
  OK(cuStreamBeginCapture_v2(a, CU_STREAM_CAPTURE_MODE_GLOBAL));
  CHECK_EQ(cuEventQuery(outside), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  CHECK_EQ(cuStreamEndCapture(a, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  OK(cuStreamBeginCapture_v2(a, CU_STREAM_CAPTURE_MODE_GLOBAL));
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
  OK(cuThreadExchangeStreamCaptureMode(&mode));
  OK(cuEventQuery(outside));
  OK(cuMemAlloc_v2(&pointer, 4096));
  OK(cuMemFree_v2(pointer));
  OK(cuThreadExchangeStreamCaptureMode(&mode));
  CHECK_EQ(mode, CU_STREAM_CAPTURE_MODE_RELAXED);
  OK(cuStreamEndCapture(a, &graph));
  OK(cuGraphDestroy(graph));

  OK(cuStreamBeginCapture_v2(a, CU_STREAM_CAPTURE_MODE_RELAXED));
  CHECK_EQ(cuStreamQuery(a), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  CHECK_EQ(cuStreamEndCapture(a, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);

  OK(cuStreamBeginCapture_v2(a, CU_STREAM_CAPTURE_MODE_RELAXED));
  CHECK_EQ(cuStreamWaitEvent(a, outside, 0), CUDA_ERROR_STREAM_CAPTURE_ISOLATION);
  CHECK_EQ(cuStreamEndCapture(a, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);

  OK(cuStreamBeginCapture_v2(a, CU_STREAM_CAPTURE_MODE_RELAXED));
  OK(cuEventRecord(event, a));
  OK(cuStreamWaitEvent(b, event, 0));
  sim_launch(b, 1, 10);
  CHECK_EQ(cuEventQuery(event), CUDA_ERROR_CAPTURED_EVENT);
  CHECK_EQ(cuStreamEndCapture(b, &graph), CUDA_ERROR_STREAM_CAPTURE_UNMATCHED);
  CHECK_EQ(cuStreamEndCapture(a, &graph), CUDA_ERROR_STREAM_CAPTURE_UNJOINED);

  OK(cuStreamBeginCapture_v2(blocking, CU_STREAM_CAPTURE_MODE_RELAXED));
  uint64_t us = 1;
  void *parameters[] = {&us};
  CHECK_EQ(cuLaunchKernel(sim_function("busy_us"), 1, 1, 1, 1, 1, 1, 0, NULL, parameters, NULL),
           CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
  CHECK_EQ(cuStreamEndCapture(blocking, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  CHECK_EQ(cuStreamBeginCapture_v2(NULL, CU_STREAM_CAPTURE_MODE_RELAXED), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  CHECK_EQ(cuStreamEndCapture(a, &graph), CUDA_ERROR_ILLEGAL_STATE);
  OK(cuEventDestroy_v2(event));
  OK(cuEventDestroy_v2(outside));
  sim_end();
  return TEST_END;
}
