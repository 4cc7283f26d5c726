/*
 * Memory that a slice holds beyond its memory limit: managed memory that stays on the host, where the GPU reads and
 * writes it over PCIe. It never takes memory of the GPU, so memory that other slices have booked is always there.
 */
#ifndef VGPU_HOST_BACKED_H
#define VGPU_HOST_BACKED_H

#include "memory.h"

/*
 * Allocates the bytes of a reservation that is host-backed. The driver's answer; CUDA_ERROR_OUT_OF_MEMORY, counted as
 * refused, where the driver cannot hold managed memory on the host.
 */
CUresult host_backed_allocate(CUdeviceptr *pointer, const struct memory_reservation *reservation, unsigned int flags,
                              enum vgpu_denied_api api);

/* Whether the address lies in host-backed memory of this process. */
bool host_backed_has(CUdeviceptr pointer);

#endif
