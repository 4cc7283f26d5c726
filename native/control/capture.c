#include "capture.h"
#include "driver.h"
#include "fork.h"
#include "gate_state.h"

uint32_t captures;

bool capture_runs_on(CUstream stream) {
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  return driver.cuStreamIsCapturing(stream, &status) == CUDA_SUCCESS && status != CU_STREAM_CAPTURE_STATUS_NONE;
}

bool capture_query(CUstream stream) {
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  /* The status of the legacy stream cannot be queried while another stream is captured. In that case recording on it
   * would invalidate the capture. */
  return driver.cuStreamIsCapturing(stream, &status) != CUDA_SUCCESS || status != CU_STREAM_CAPTURE_STATUS_NONE;
}

static void count(uint32_t by) {
  __atomic_fetch_add(&captures, by, __ATOMIC_RELAXED);
  atomic_fetch_add_explicit(&gate.slow_path_reasons, by, memory_order_relaxed);
}

void capture_begun(void) {
  count(1);
}

void capture_ended(void) {
  count(-1u);
}

static void reset(void) {
  captures = 0;
}
AFTER_FORK(reset)
