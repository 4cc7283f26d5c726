#include "driver.h"

/* The calls of CUDA 2 with 32-bit addresses and sizes. No memory of this process has such an address, so their copies
 * and fills always fail. Calls that allocate or query are defined next to their successors. */
#define NARROW(name, ...)                                                                                              \
  SIM_API CUresult name(__VA_ARGS__) {                                                                                 \
    ENTER_NARROW();                                                                                                    \
    return CUDA_ERROR_INVALID_VALUE;                                                                                   \
  }

#pragma GCC diagnostic ignored "-Wunused-parameter"

// clang-format off
NARROW(cuMemcpyHtoD, CUdeviceptr_v1 to, const void *from, unsigned int size)
NARROW(cuMemcpyDtoH, void *to, CUdeviceptr_v1 from, unsigned int size)
NARROW(cuMemcpyDtoD, CUdeviceptr_v1 to, CUdeviceptr_v1 from, unsigned int size)
NARROW(cuMemcpyDtoA, CUarray to, unsigned int offset, CUdeviceptr_v1 from, unsigned int size)
NARROW(cuMemcpyAtoD, CUdeviceptr_v1 to, CUarray from, unsigned int offset, unsigned int size)
NARROW(cuMemcpyHtoA, CUarray to, unsigned int offset, const void *from, unsigned int size)
NARROW(cuMemcpyAtoH, void *to, CUarray from, unsigned int offset, unsigned int size)
NARROW(cuMemcpyAtoA, CUarray to, unsigned int to_offset, CUarray from, unsigned int from_offset, unsigned int size)
NARROW(cuMemcpy2D, const CUDA_MEMCPY2D_v1 *copy)
NARROW(cuMemcpy2DUnaligned, const CUDA_MEMCPY2D_v1 *copy)
NARROW(cuMemcpy3D, const CUDA_MEMCPY3D_v1 *copy)
NARROW(cuMemcpyHtoDAsync, CUdeviceptr_v1 to, const void *from, unsigned int size, CUstream stream)
NARROW(cuMemcpyDtoHAsync, void *to, CUdeviceptr_v1 from, unsigned int size, CUstream stream)
NARROW(cuMemcpyDtoDAsync, CUdeviceptr_v1 to, CUdeviceptr_v1 from, unsigned int size, CUstream stream)
NARROW(cuMemcpyHtoAAsync, CUarray to, unsigned int offset, const void *from, unsigned int size, CUstream stream)
NARROW(cuMemcpyAtoHAsync, void *to, CUarray from, unsigned int offset, unsigned int size, CUstream stream)
NARROW(cuMemcpy2DAsync, const CUDA_MEMCPY2D_v1 *copy, CUstream stream)
NARROW(cuMemcpy3DAsync, const CUDA_MEMCPY3D_v1 *copy, CUstream stream)
NARROW(cuMemsetD8, CUdeviceptr_v1 to, unsigned char value, unsigned int n)
NARROW(cuMemsetD16, CUdeviceptr_v1 to, unsigned short value, unsigned int n)
NARROW(cuMemsetD32, CUdeviceptr_v1 to, unsigned int value, unsigned int n)
NARROW(cuMemsetD2D8, CUdeviceptr_v1 to, unsigned int pitch, unsigned char value, unsigned int width, unsigned int height)
NARROW(cuMemsetD2D16, CUdeviceptr_v1 to, unsigned int pitch, unsigned short value, unsigned int width, unsigned int height)
NARROW(cuMemsetD2D32, CUdeviceptr_v1 to, unsigned int pitch, unsigned int value, unsigned int width, unsigned int height)
// clang-format on
