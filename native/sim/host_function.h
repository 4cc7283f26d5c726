/* Host functions in streams: the stream stops at the operation until a thread of the process has run the function. */
#ifndef SIM_HOST_FUNCTION_H
#define SIM_HOST_FUNCTION_H

#include "stream.h"

/* Pushes a host function into the stream, without capturing. */
CUresult host_function_run_in(CUstream stream, CUhostFn function, void *data);

/* Implements cuStreamAddCallback; `handle` is passed to the callback. */
CUresult host_callback_push(CUstream stream, CUstream handle, CUstreamCallback callback, void *data);

/* host_value_wait stops the stream until the word at `address` satisfies the comparison in `flags`
 * (CUstreamWaitValue_flags). host_value_write writes the word. */
CUresult host_value_wait(CUstream stream, CUdeviceptr address, uint64_t value, bool wide, unsigned int flags);
CUresult host_value_write(CUstream stream, CUdeviceptr address, uint64_t value, bool wide);

#endif
