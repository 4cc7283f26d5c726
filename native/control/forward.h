/* What the forwards of forward.inc ask when they are called for the first time. */
#ifndef VGPU_FORWARD_H
#define VGPU_FORWARD_H

/*
 * The driver's function of that name. Where this driver has none, a function that answers so: CUDA_ERROR_NOT_FOUND or
 * NVML_ERROR_FUNCTION_NOT_FOUND.
 */
void *forward_target(const char *name);

#endif
