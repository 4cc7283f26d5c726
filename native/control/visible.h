/* Hides GPUs that the limits do not list, because programs use the first GPU that they see. The list is passed to the
 * driver itself, so that all of its calls are consistent. */
#ifndef VGPU_VISIBLE_H
#define VGPU_VISIBLE_H

#include <stdbool.h>

/*
 * Called before the driver's cuInit, which reads CUDA_VISIBLE_DEVICES. Until visible_end the variable lists the GPUs of
 * the limits by UUID, in the order of their PCI addresses as in NVML. A value that the program had set selects among
 * them. False: nothing was changed.
 */
bool visible_begin(void);

/* Called after cuInit. `known`: the driver has read the variable and will not read it again. */
void visible_end(bool known);

#endif
