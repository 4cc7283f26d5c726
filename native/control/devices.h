/* Which device of the limits file a device of the driver is. */
#ifndef VGPU_DEVICES_H
#define VGPU_DEVICES_H

#include "cuda_abi.h"
#include <stdbool.h>
#include <stdint.h>

#define DEVICE_UNLISTED (-1)

/* Asks the driver for its devices; after a successful cuInit. */
void devices_match(void);

/* Index in the limits file, DEVICE_UNLISTED if it is not there. */
int devices_index(CUdevice device);

/* The driver's ordinal of a device of the limits file, -1 when the driver does not show it. */
int devices_ordinal(uint32_t index);

/* Index of the current context's device and the context itself; DEVICE_UNLISTED and NULL without one. */
int devices_current(CUcontext *context);

/* The only listed device that the driver shows; DEVICE_UNLISTED if there are more, or others. */
int devices_only(void);

/* A context ended: its handle may come back on another device. */
void devices_forget_context(CUcontext context);

#endif
