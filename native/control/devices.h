/* Maps devices of the driver to devices of the limits file. */
#ifndef VGPU_DEVICES_H
#define VGPU_DEVICES_H

#include "cuda_abi.h"
#include <stdbool.h>
#include <stdint.h>

#define DEVICE_UNLISTED (-1)

/* Reads the driver's devices. Called after a successful cuInit. */
void devices_match(void);

/* Index in the limits file; DEVICE_UNLISTED if it is not listed. */
int devices_index(CUdevice device);

/* The driver's ordinal of a listed device; -1 if the driver does not show it. */
int devices_ordinal(uint32_t index);

/* Index of the current context's device, and the context; DEVICE_UNLISTED and NULL without a current context. */
int devices_current(CUcontext *context);

/* The listed device if it is the only device that the driver shows; otherwise DEVICE_UNLISTED. */
int devices_only(void);

/* Drops a destroyed context from the cache: its handle may be reused on another device. */
void devices_forget_context(CUcontext context);

#endif
