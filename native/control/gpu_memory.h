/* Memory of this process as the driver reports it through NVML. Called rarely, because initialising NVML takes tens of
 * milliseconds. */
#ifndef VGPU_GPU_MEMORY_H
#define VGPU_GPU_MEMORY_H

#include <stdbool.h>
#include <stdint.h>

/* Bytes that the process `pid` uses on the GPU; 0 and `*listed` false while NVML does not list the process. False: NVML
 * is missing or does not report memory per process. */
bool gpu_memory_of(const char *uuid, uint32_t pid, uint64_t *bytes, bool *listed);

#endif
