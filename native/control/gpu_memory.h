/* What the driver says that this process has of a GPU, by NVML: asked for rarely, since starting that takes tens of
 * milliseconds. */
#ifndef VGPU_GPU_MEMORY_H
#define VGPU_GPU_MEMORY_H

#include <stdbool.h>
#include <stdint.h>

/* Bytes of the process `pid`, 0 and `*listed` false while it is not among those on the GPU. False: NVML is not there,
 * or does not say. */
bool gpu_memory_of(const char *uuid, uint32_t pid, uint64_t *bytes, bool *listed);

#endif
