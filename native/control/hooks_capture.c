/* Counts captures, so that the other hooks can tell at once that there is none. */
#include "capture.h"
#include "control.h"
#include "driver.h"
#include "gate.h"

uint32_t captures;

static bool is_capturing(CUstream stream) {
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  return driver.cuStreamIsCapturing(stream, &status) == CUDA_SUCCESS && status != CU_STREAM_CAPTURE_STATUS_NONE;
}

bool capture_asks(CUstream stream) {
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  /* The legacy stream cannot be asked while another is captured: then nothing may be recorded on it either. */
  return driver.cuStreamIsCapturing(stream, &status) != CUDA_SUCCESS || status != CU_STREAM_CAPTURE_STATUS_NONE;
}

static void count(uint32_t by) {
  __atomic_fetch_add(&captures, by, __ATOMIC_RELAXED);
  __atomic_fetch_add(&gate.detours, by, __ATOMIC_RELAXED);
}

static CUresult begun(CUresult result) {
  if (result == CUDA_SUCCESS) count(1);
  return result;
}

CUresult cuStreamBeginCapture(CUstream stream) {
  return begun(driver.cuStreamBeginCapture(stream));
}

CUresult cuStreamBeginCapture_ptsz(CUstream stream) {
  return begun(driver.cuStreamBeginCapture_ptsz(stream));
}

CUresult cuStreamBeginCapture_v2(CUstream stream, CUstreamCaptureMode mode) {
  return begun(driver.cuStreamBeginCapture_v2(stream, mode));
}

CUresult cuStreamBeginCapture_v2_ptsz(CUstream stream, CUstreamCaptureMode mode) {
  return begun(driver.cuStreamBeginCapture_v2_ptsz(stream, mode));
}

CUresult cuStreamBeginCaptureToGraph(CUstream stream, CUgraph graph, const CUgraphNode *dependencies,
                                     const CUgraphEdgeData *edges, size_t count, CUstreamCaptureMode mode) {
  return begun(driver.cuStreamBeginCaptureToGraph(stream, graph, dependencies, edges, count, mode));
}

CUresult cuStreamBeginCaptureToGraph_ptsz(CUstream stream, CUgraph graph, const CUgraphNode *dependencies,
                                          const CUgraphEdgeData *edges, size_t count, CUstreamCaptureMode mode) {
  return begun(driver.cuStreamBeginCaptureToGraph_ptsz(stream, graph, dependencies, edges, count, mode));
}

CUresult cuStreamBeginRecaptureToGraph(CUstream stream, CUstreamCaptureMode mode, CUgraph graph,
                                       CUgraphRecaptureCallback differs, void *data) {
  return begun(driver.cuStreamBeginRecaptureToGraph(stream, mode, graph, differs, data));
}

CUresult cuStreamBeginRecaptureToGraph_ptsz(CUstream stream, CUstreamCaptureMode mode, CUgraph graph,
                                            CUgraphRecaptureCallback differs, void *data) {
  return begun(driver.cuStreamBeginRecaptureToGraph_ptsz(stream, mode, graph, differs, data));
}

/* A capture may end although the call fails, and not end although a call was made: only the stream knows. */
static void ended(CUstream stream, bool was_capturing) {
  if (was_capturing && !is_capturing(stream)) count(-1u);
}

CUresult cuStreamEndCapture(CUstream stream, CUgraph *graph) {
  bool was_capturing = is_capturing(stream);
  CUresult result = driver.cuStreamEndCapture(stream, graph);
  ended(stream, was_capturing);
  return result;
}

CUresult cuStreamEndCapture_ptsz(CUstream stream, CUgraph *graph) {
  bool was_capturing = is_capturing(capture_stream(stream, true));
  CUresult result = driver.cuStreamEndCapture_ptsz(stream, graph);
  ended(capture_stream(stream, true), was_capturing);
  return result;
}

void capture_after_fork(void) {
  captures = 0;
}
