"""Worker threads that have no current context: launches and stream-ordered memory on a stream that they were handed."""

import ctypes
import threading

from cuda.bindings import driver as cu
from report import PTX, fill, pace, same


def do(answer):
    code, *values = answer
    if code != 0:
        raise RuntimeError(code.name)
    return values[0] if len(values) == 1 else values


def in_worker(work):
    """Runs the work in a thread of its own; its error is that of the program."""
    errors = []

    def run():
        try:
            same("context of the worker", int(do(cu.cuCtxGetCurrent())))
            work()
        except Exception as error:
            errors.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    if errors:
        raise errors[0]


do(cu.cuInit(0))
do(cu.cuCtxSetCurrent(do(cu.cuDevicePrimaryCtxRetain(0))))
stream = do(cu.cuStreamCreate(1))
library = do(cu.cuLibraryLoadData(PTX, None, None, 0, None, None, 0))
kernel = cu.CUfunction(int(do(cu.cuLibraryGetKernel(library, b"busy_us"))))


def launch(microseconds):
    do(cu.cuLaunchKernel(kernel, 80, 1, 1, 1, 1, 1, 0, stream, ((microseconds,), (ctypes.c_uint64,)), 0))


def refused(error):
    return str(error) == "CUDA_ERROR_OUT_OF_MEMORY"


in_worker(lambda: pace("a worker's stream", launch, lambda: do(cu.cuStreamSynchronize(stream))))
in_worker(lambda: fill("cuMemAllocAsync in a worker", lambda size: do(cu.cuMemAllocAsync(size, stream)), refused))
