/*
 * Hides GPUs that the limits do not list. Programs take the first GPU that they see; one that gives no memory would be
 * the wrong one. The driver itself is told which it may show, so that every call agrees with it.
 */
#ifndef VGPU_VISIBLE_H
#define VGPU_VISIBLE_H

#include <stdbool.h>

/*
 * Before the driver's cuInit, which reads CUDA_VISIBLE_DEVICES: for so long the process's environment names the listed
 * GPUs, by UUID and in the order of their PCI addresses, as NVML does. What the program had set chooses among these.
 * False: nothing was changed.
 */
bool visible_begin(void);

/* After it; `known`: the driver has read the variable, and will not do so again. */
void visible_end(bool known);

#endif
