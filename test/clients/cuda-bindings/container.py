"""cuda.bindings.driver: one of several processes of a container, which share its limit."""

from cuda.bindings import driver as cu
from report import fill, hold


class Refused(Exception):
    pass


def allocate(size):
    result, pointer = cu.cuMemAlloc(size)
    if result == cu.CUresult.CUDA_ERROR_OUT_OF_MEMORY:
        raise Refused
    assert result == cu.CUresult.CUDA_SUCCESS, result
    return pointer


assert cu.cuInit(0)[0] == cu.CUresult.CUDA_SUCCESS
result, context = cu.cuDevicePrimaryCtxRetain(0)
assert result == cu.CUresult.CUDA_SUCCESS, result
cu.cuCtxSetCurrent(context)
held = fill("cuMemAlloc, several processes", allocate, lambda error: isinstance(error, Refused))
hold()
