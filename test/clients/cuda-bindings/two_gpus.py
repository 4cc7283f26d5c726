"""Two GPUs in one process: work for each of them while the context of the other one is current."""

import ctypes

from cuda.bindings import driver as cu
from report import PTX, fill, pace, same, total


def do(answer):
    code, *values = answer
    if code != 0:
        raise RuntimeError(code.name)
    return values[0] if len(values) == 1 else values


def refused(error):
    return str(error) == "CUDA_ERROR_OUT_OF_MEMORY"


do(cu.cuInit(0))
same("GPUs", do(cu.cuDeviceGetCount()))
contexts = [do(cu.cuDevicePrimaryCtxRetain(gpu)) for gpu in range(2)]
streams = []
for gpu, context in enumerate(contexts):
    do(cu.cuCtxSetCurrent(context))
    streams.append(do(cu.cuStreamCreate(1)))
    total(f"cuMemGetInfo of GPU {gpu}", do(cu.cuMemGetInfo())[1])
library = do(cu.cuLibraryLoadData(PTX, None, None, 0, None, None, 0))
kernel = cu.CUfunction(int(do(cu.cuLibraryGetKernel(library, b"busy_us"))))

for gpu, stream in enumerate(streams):
    do(cu.cuCtxSetCurrent(contexts[1 - gpu]))

    def launch(microseconds, stream=stream):
        do(cu.cuLaunchKernel(kernel, 80, 1, 1, 1, 1, 1, 0, stream, ((microseconds,), (ctypes.c_uint64,)), 0))

    def allocate(size, stream=stream):
        return do(cu.cuMemAllocAsync(size, stream))

    def synchronize(stream=stream):
        do(cu.cuStreamSynchronize(stream))

    pace(f"a stream of GPU {gpu}", launch, synchronize)
    fill(f"cuMemAllocAsync on GPU {gpu}", allocate, refused)
