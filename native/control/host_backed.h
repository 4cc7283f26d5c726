/* Memory that a slice holds beyond its memory limit: managed memory that stays on the host, where the GPU accesses it
 * over PCIe. It never uses GPU memory, so the memory that is allocated to other slices stays available. */
#ifndef VGPU_HOST_BACKED_H
#define VGPU_HOST_BACKED_H

#include "memory.h"

/* Allocates the bytes of a host-backed reservation. Returns the driver's result, or CUDA_ERROR_OUT_OF_MEMORY, counted
 * as refused, if the driver cannot hold managed memory on the host. */
CUresult host_backed_allocate(CUdeviceptr *pointer, const struct memory_reservation *reservation, unsigned int flags,
                              enum vgpu_denied_api api);

/* Whether the address lies in host-backed memory of this process. */
bool host_backed_has(CUdeviceptr pointer);

#endif
