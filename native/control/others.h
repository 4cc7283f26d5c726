/* Load of other processes on a GPU, as far as it is known. It determines how much of a measured duration belongs to
 * this process. */
#ifndef VGPU_OTHERS_H
#define VGPU_OTHERS_H

#include <stdint.h>

#define OTHERS_UNKNOWN UINT32_MAX

/* The share of the device that all other processes use, in ppm. 0 when the agent reports no other container on the GPU
 * and the container has no other process. OTHERS_UNKNOWN when the share is not known. */
uint32_t others_ppm(uint32_t device);

#endif
