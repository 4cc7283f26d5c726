/* Maps devices of the driver to devices of the limits file. */
#ifndef VGPU_DEVICES_H
#define VGPU_DEVICES_H

#include "cuda_abi.h"
#include <stdbool.h>
#include <stdint.h>

#define DEVICE_UNLISTED (-1)
/* The driver itself rejects the call: it has no context and no stream, names a device that does not exist, or has
 * arguments that no GPU can serve. */
#define DEVICE_NONE (-3)

/* Reads the driver's devices. Called after a successful cuInit. */
void devices_match(void);

/* Index in the limits file; DEVICE_UNLISTED if it is not listed, DEVICE_NONE if the driver does not show it. */
int devices_index(CUdevice device);

/* The driver's ordinal of a listed device; -1 if the driver does not show it. */
int devices_ordinal(uint32_t index);

/* Index of the current context's device, and the context; DEVICE_NONE and NULL without a current context. */
int devices_current(CUcontext *context);

/* Index of the device on which work of a stream runs. It is the device of the stream's context, which need not be
 * current; a default stream belongs to the current context. The result is cached. */
int devices_of_stream(CUstream stream);

/* The context of a stream; NULL if there is none. */
CUcontext devices_stream_context(CUstream stream);

/* Index of the device of a context, which need not be current. */
int devices_of_context(CUcontext context);

/* Whether the address is memory of a device. Memory unknown to the driver is host memory. */
bool devices_hold(CUdeviceptr pointer);

/* Index of the device that holds the memory behind a pointer. */
int devices_of_pointer(CUdeviceptr pointer);

/* The listed device if it is the only device that the driver shows; otherwise DEVICE_UNLISTED. */
int devices_only(void);

/* Drop a context or stream from the cache before its handle can be reused on another device. A destroyed context ends
 * all of its streams. */
void devices_forget_context(CUcontext context);
void devices_forget_stream(CUstream stream);
void devices_forget_streams(void);

#endif
