/* Whether this process has the GPU to itself: then whatever is measured is its own doing. */
#ifndef VGPU_ALONE_H
#define VGPU_ALONE_H

#include <stdbool.h>
#include <stdint.h>

/* The agent says that no other container uses the device, and no other process of this container does either. */
bool device_is_ours(uint32_t device);

#endif
