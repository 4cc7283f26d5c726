"""cuda.bindings.driver: one of several processes of a container, which share its limit."""

from cuda.bindings import driver as cu
from report import fill, hold


class Refused(Exception):
    pass


def do(answer):
    result, *values = answer
    if result == cu.CUresult.CUDA_ERROR_OUT_OF_MEMORY:
        raise Refused
    assert result == cu.CUresult.CUDA_SUCCESS, result
    return values[0] if values else None


contexts = []


def allocate(size):
    # A context takes memory too: where the others have taken all, there is no room for it either.
    if not contexts:
        contexts.append(do(cu.cuDevicePrimaryCtxRetain(0)))
        do(cu.cuCtxSetCurrent(contexts[0]))
    return do(cu.cuMemAlloc(size))


do(cu.cuInit(0))
held = fill("cuMemAlloc, several processes", allocate, lambda error: isinstance(error, Refused))
hold()
