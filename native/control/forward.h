/* Called by the forwarding functions of forward.inc on their first call. */
#ifndef VGPU_FORWARD_H
#define VGPU_FORWARD_H

/* The driver's function of that name. If the driver has none, a function that returns CUDA_ERROR_NOT_FOUND or
 * NVML_ERROR_FUNCTION_NOT_FOUND. */
void *forward_target(const char *name);

#endif
