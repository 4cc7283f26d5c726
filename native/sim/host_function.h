/*
 * Functions of the host in a stream: the GPU stops that stream there, a thread of the process runs the function.
 */
#ifndef SIM_HOST_FUNCTION_H
#define SIM_HOST_FUNCTION_H

#include "stream.h"

/* Into the stream, past any capture. */
CUresult host_function_run_in(CUstream stream, CUhostFn function, void *data);

/* As cuStreamAddCallback; `handle` is what the callback is told. */
CUresult host_callback_push(CUstream stream, CUstream handle, CUstreamCallback callback, void *data);

/* Stops the stream until the word at `address` compares as `flags` (CUstreamWaitValue_flags) ask, or writes it. */
CUresult host_value_wait(CUstream stream, CUdeviceptr address, uint64_t value, bool wide, unsigned int flags);
CUresult host_value_write(CUstream stream, CUdeviceptr address, uint64_t value, bool wide);

#endif
