#include "call_pairs.h"
#include "capture.h"
#include "task.h"

static CUresult fill(CUstream handle, CUdeviceptr to, size_t pitch, unsigned int value, unsigned int element,
                     size_t width, size_t height, bool wait) {
  CUstream stream;
  if (width == 0 || height == 0) return CUDA_SUCCESS;
  NEED(to != 0 && to % element == 0);
  if (wait) TRY(capture_forbids());
  TRY(stream_resolve(handle, &stream));
  struct task task = {
      .type = CU_GRAPH_NODE_TYPE_MEMSET,
      .fill = {.to = to, .pitch = pitch, .value = value, .element = element, .width = width, .height = height}};
  TRY(task_submit(stream, &task));
  /* Only fills of host memory are synchronous. */
  return CUDA_SUCCESS;
}

// clang-format off
WAITING(cuMemsetD8_v2, (CUdeviceptr to, unsigned char value, size_t n), (to, value, n), fill(s, to, 0, value, 1, n, 1, true))
WAITING(cuMemsetD16_v2, (CUdeviceptr to, unsigned short value, size_t n), (to, value, n), fill(s, to, 0, value, 2, n, 1, true))
WAITING(cuMemsetD32_v2, (CUdeviceptr to, unsigned int value, size_t n), (to, value, n), fill(s, to, 0, value, 4, n, 1, true))
WAITING(cuMemsetD2D8_v2, (CUdeviceptr to, size_t pitch, unsigned char value, size_t width, size_t height),
        (to, pitch, value, width, height), fill(s, to, pitch, value, 1, width, height, true))
WAITING(cuMemsetD2D16_v2, (CUdeviceptr to, size_t pitch, unsigned short value, size_t width, size_t height),
        (to, pitch, value, width, height), fill(s, to, pitch, value, 2, width, height, true))
WAITING(cuMemsetD2D32_v2, (CUdeviceptr to, size_t pitch, unsigned int value, size_t width, size_t height),
        (to, pitch, value, width, height), fill(s, to, pitch, value, 4, width, height, true))

QUEUED(cuMemsetD8Async, (CUdeviceptr to, unsigned char value, size_t n), (to, value, n), fill(s, to, 0, value, 1, n, 1, false))
QUEUED(cuMemsetD16Async, (CUdeviceptr to, unsigned short value, size_t n), (to, value, n), fill(s, to, 0, value, 2, n, 1, false))
QUEUED(cuMemsetD32Async, (CUdeviceptr to, unsigned int value, size_t n), (to, value, n), fill(s, to, 0, value, 4, n, 1, false))
QUEUED(cuMemsetD2D8Async, (CUdeviceptr to, size_t pitch, unsigned char value, size_t width, size_t height),
       (to, pitch, value, width, height), fill(s, to, pitch, value, 1, width, height, false))
QUEUED(cuMemsetD2D16Async, (CUdeviceptr to, size_t pitch, unsigned short value, size_t width, size_t height),
       (to, pitch, value, width, height), fill(s, to, pitch, value, 2, width, height, false))
QUEUED(cuMemsetD2D32Async, (CUdeviceptr to, size_t pitch, unsigned int value, size_t width, size_t height),
       (to, pitch, value, width, height), fill(s, to, pitch, value, 4, width, height, false))
// clang-format on
