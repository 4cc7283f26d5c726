/* Copies within the device and fills run on the SMs and are paced like kernels. Their cost depends on the amount of
 * memory, so sizes of the same magnitude share one cost. */
#include "driver.h"
#include "gate.h"
#include "magnitude.h"

/* `what` separates copies, fills and fills of rows. */
enum { COPY = 1, FILL, FILL_ROWS };

#define KEY(what, bytes) launch_key(what, magnitude(bytes), 0x66696c6c, 0)
#define OF_THREAD(stream) capture_stream(stream, true)

GATED(cuMemcpyDtoD, (CUdeviceptr_v1 to, CUdeviceptr_v1 from, unsigned int bytes), (to, from, bytes), KEY(COPY, bytes),
      NULL)
GATED(cuMemcpyDtoD_v2, (CUdeviceptr to, CUdeviceptr from, size_t bytes), (to, from, bytes), KEY(COPY, bytes), NULL)
GATED(cuMemcpyDtoD_v2_ptds, (CUdeviceptr to, CUdeviceptr from, size_t bytes), (to, from, bytes), KEY(COPY, bytes),
      OF_THREAD(NULL))
GATED(cuMemcpyDtoDAsync, (CUdeviceptr_v1 to, CUdeviceptr_v1 from, unsigned int bytes, CUstream stream),
      (to, from, bytes, stream), KEY(COPY, bytes), stream)
GATED(cuMemcpyDtoDAsync_v2, (CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream),
      (to, from, bytes, stream), KEY(COPY, bytes), stream)
GATED(cuMemcpyDtoDAsync_v2_ptsz, (CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream),
      (to, from, bytes, stream), KEY(COPY, bytes), OF_THREAD(stream))

/* Each element size has a call in five variants, and five more for rows. */
#define FILLS(name, type, size)                                                                                        \
  GATED(name, (CUdeviceptr_v1 to, type value, unsigned int count), (to, value, count),                                 \
        KEY(FILL, (uint64_t)count *size), NULL)                                                                        \
  GATED(name##_v2, (CUdeviceptr to, type value, size_t count), (to, value, count), KEY(FILL, count *size), NULL)       \
  GATED(name##_v2_ptds, (CUdeviceptr to, type value, size_t count), (to, value, count), KEY(FILL, count *size),        \
        OF_THREAD(NULL))                                                                                               \
  GATED(name##Async, (CUdeviceptr to, type value, size_t count, CUstream stream), (to, value, count, stream),          \
        KEY(FILL, count *size), stream)                                                                                \
  GATED(name##Async_ptsz, (CUdeviceptr to, type value, size_t count, CUstream stream), (to, value, count, stream),     \
        KEY(FILL, count *size), OF_THREAD(stream))

#define ROW_FILLS(name, type, size)                                                                                    \
  GATED(name, (CUdeviceptr_v1 to, unsigned int pitch, type value, unsigned int width, unsigned int height),            \
        (to, pitch, value, width, height), KEY(FILL_ROWS, (uint64_t)width *height *size), NULL)                        \
  GATED(name##_v2, (CUdeviceptr to, size_t pitch, type value, size_t width, size_t height),                            \
        (to, pitch, value, width, height), KEY(FILL_ROWS, width *height *size), NULL)                                  \
  GATED(name##_v2_ptds, (CUdeviceptr to, size_t pitch, type value, size_t width, size_t height),                       \
        (to, pitch, value, width, height), KEY(FILL_ROWS, width *height *size), OF_THREAD(NULL))                       \
  GATED(name##Async, (CUdeviceptr to, size_t pitch, type value, size_t width, size_t height, CUstream stream),         \
        (to, pitch, value, width, height, stream), KEY(FILL_ROWS, width *height *size), stream)                        \
  GATED(name##Async_ptsz, (CUdeviceptr to, size_t pitch, type value, size_t width, size_t height, CUstream stream),    \
        (to, pitch, value, width, height, stream), KEY(FILL_ROWS, width *height *size), OF_THREAD(stream))

FILLS(cuMemsetD8, unsigned char, 1)
FILLS(cuMemsetD16, unsigned short, 2)
FILLS(cuMemsetD32, unsigned int, 4)
ROW_FILLS(cuMemsetD2D8, unsigned char, 1)
ROW_FILLS(cuMemsetD2D16, unsigned short, 2)
ROW_FILLS(cuMemsetD2D32, unsigned int, 4)
