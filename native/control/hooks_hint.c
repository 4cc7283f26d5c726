/* Location hints for managed memory. Advice and prefetches can move or copy pages to the GPU, but memory beyond the
 * limit must stay on the host. Such hints are ignored and return success. */
#include "control.h"
#include "driver.h"
#include "host_backed.h"

static bool is_host_backed(CUdeviceptr pointer) {
  return control_enforces() && host_backed_has(pointer);
}

CUresult cuMemAdvise(CUdeviceptr pointer, size_t bytes, CUmem_advise advice, CUdevice device) {
  return is_host_backed(pointer) ? CUDA_SUCCESS : driver.cuMemAdvise(pointer, bytes, advice, device);
}

CUresult cuMemAdvise_v2(CUdeviceptr pointer, size_t bytes, CUmem_advise advice, CUmemLocation location) {
  return is_host_backed(pointer) ? CUDA_SUCCESS : driver.cuMemAdvise_v2(pointer, bytes, advice, location);
}

CUresult cuMemPrefetchAsync(CUdeviceptr pointer, size_t bytes, CUdevice device, CUstream stream) {
  return is_host_backed(pointer) ? CUDA_SUCCESS : driver.cuMemPrefetchAsync(pointer, bytes, device, stream);
}

CUresult cuMemPrefetchAsync_ptsz(CUdeviceptr pointer, size_t bytes, CUdevice device, CUstream stream) {
  return is_host_backed(pointer) ? CUDA_SUCCESS : driver.cuMemPrefetchAsync_ptsz(pointer, bytes, device, stream);
}

CUresult cuMemPrefetchAsync_v2(CUdeviceptr pointer, size_t bytes, CUmemLocation location, unsigned int flags,
                               CUstream stream) {
  return is_host_backed(pointer) ? CUDA_SUCCESS : driver.cuMemPrefetchAsync_v2(pointer, bytes, location, flags, stream);
}

CUresult cuMemPrefetchAsync_v2_ptsz(CUdeviceptr pointer, size_t bytes, CUmemLocation location, unsigned int flags,
                                    CUstream stream) {
  return is_host_backed(pointer) ? CUDA_SUCCESS
                                 : driver.cuMemPrefetchAsync_v2_ptsz(pointer, bytes, location, flags, stream);
}
