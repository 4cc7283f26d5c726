/* Counts the captures that begin and end, so that the other hooks need only one load while none is in progress. */
#include "capture.h"
#include "driver.h"

static CUresult begun(CUresult result) {
  if (result == CUDA_SUCCESS) capture_begun();
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

/* A capture may end although the call fails, and continue although the call succeeds, so the stream is queried. */
static void ended(CUstream stream, bool was_capturing) {
  if (was_capturing && !capture_runs_on(stream)) capture_ended();
}

CUresult cuStreamEndCapture(CUstream stream, CUgraph *graph) {
  bool was_capturing = capture_runs_on(stream);
  CUresult result = driver.cuStreamEndCapture(stream, graph);
  ended(stream, was_capturing);
  return result;
}

CUresult cuStreamEndCapture_ptsz(CUstream stream, CUgraph *graph) {
  bool was_capturing = capture_runs_on(capture_stream(stream, true));
  CUresult result = driver.cuStreamEndCapture_ptsz(stream, graph);
  ended(capture_stream(stream, true), was_capturing);
  return result;
}
