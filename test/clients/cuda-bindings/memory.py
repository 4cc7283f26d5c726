"""cuda.bindings.driver: every way to memory, up to the limit and back."""

import ctypes

import numpy as np
from cuda.bindings import driver as cu
from report import MIB, PTX, fill, pace, same, total

OUT_OF_MEMORY = cu.CUresult.CUDA_ERROR_OUT_OF_MEMORY


class Refused(Exception):
    def __init__(self, result):
        super().__init__(result.name)
        self.result = result


def do(answer):
    result, *values = answer if isinstance(answer, tuple) else (answer,)
    if result != cu.CUresult.CUDA_SUCCESS:
        raise Refused(result)
    return values[0] if len(values) == 1 else tuple(values)


def is_refusal(error):
    return isinstance(error, Refused) and error.result == OUT_OF_MEMORY


def free_mib():
    return do(cu.cuMemGetInfo())[0] // MIB


do(cu.cuInit(0))
device = do(cu.cuDeviceGet(0))
same("driver version", do(cu.cuDriverGetVersion()))
same("name", do(cu.cuDeviceGetName(64, device)).split(b"\0")[0].decode())
same("uuid", bytes(do(cu.cuDeviceGetUuid(device)).bytes).hex())
total("cuDeviceTotalMem", do(cu.cuDeviceTotalMem(device)))

attributes = []
for attribute in cu.CUdevice_attribute:
    if not attribute.name.endswith("_MAX"):
        result, value = cu.cuDeviceGetAttribute(attribute, device)
        attributes.append(f"{int(attribute)}={value if result == cu.CUresult.CUDA_SUCCESS else result.name}")
same("attributes", " ".join(attributes))

do(cu.cuCtxSetCurrent(do(cu.cuDevicePrimaryCtxRetain(device))))
stream = do(cu.cuStreamCreate(cu.CUstream_flags.CU_STREAM_NON_BLOCKING))
total("cuMemGetInfo", do(cu.cuMemGetInfo())[1])


def way(name, allocate, release):
    """One way to memory: as much as there is, all of it back, and as much free as before."""
    before = free_mib()
    for one in reversed(fill(name, allocate, is_refusal)):
        release(one)
    do(cu.cuCtxSynchronize())
    for pool in pools:
        do(cu.cuMemPoolTrimTo(pool, 0))
    do(cu.cuDeviceGraphMemTrim(device))
    same(f"{name} free again", before - free_mib())


pools = [do(cu.cuDeviceGetDefaultMemPool(device))]
location = cu.CUmemLocation()
location.type = cu.CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE
location.id = 0

way("cuMemAlloc", lambda size: do(cu.cuMemAlloc(size)), lambda p: do(cu.cuMemFree(p)))
way(
    "cuMemAllocPitch",
    lambda size: do(cu.cuMemAllocPitch(65536, size // 65536, 4))[0],
    lambda p: do(cu.cuMemFree(p)),
)
way(
    "cuMemAllocManaged",
    lambda size: do(cu.cuMemAllocManaged(size, cu.CUmemAttach_flags.CU_MEM_ATTACH_GLOBAL.value)),
    lambda p: do(cu.cuMemFree(p)),
)
way("cuMemAllocAsync", lambda size: do(cu.cuMemAllocAsync(size, stream)), lambda p: do(cu.cuMemFreeAsync(p, stream)))


def pool_way(name, kind, place):
    properties = cu.CUmemPoolProps()
    properties.allocType = kind
    properties.location = place
    pool = do(cu.cuMemPoolCreate(properties))
    pools.append(pool)
    way(
        name,
        lambda size: do(cu.cuMemAllocFromPoolAsync(size, pool, stream)),
        lambda p: do(cu.cuMemFreeAsync(p, stream)),
    )
    pools.remove(pool)
    do(cu.cuMemPoolDestroy(pool))


pool_way("cuMemPoolCreate", cu.CUmemAllocationType.CU_MEM_ALLOCATION_TYPE_PINNED, location)
if do(cu.cuDriverGetVersion()) >= 13000 and hasattr(cu.CUmemAllocationType, "CU_MEM_ALLOCATION_TYPE_MANAGED"):
    pool_way("cuMemPoolCreate, managed", cu.CUmemAllocationType.CU_MEM_ALLOCATION_TYPE_MANAGED, location)

properties = cu.CUmemAllocationProp()
properties.type = cu.CUmemAllocationType.CU_MEM_ALLOCATION_TYPE_PINNED
properties.location = location
access = cu.CUmemAccessDesc()
access.location = location
access.flags = cu.CUmemAccess_flags.CU_MEM_ACCESS_FLAGS_PROT_READWRITE


def map_memory(size):
    handle = do(cu.cuMemCreate(size, properties, 0))
    address = do(cu.cuMemAddressReserve(size, 0, 0, 0))
    do(cu.cuMemMap(address, size, 0, handle, 0))
    do(cu.cuMemSetAccess(address, size, [access], 1))
    return handle, address, size


def unmap_memory(mapped):
    handle, address, size = mapped
    do(cu.cuMemUnmap(address, size))
    do(cu.cuMemAddressFree(address, size))
    do(cu.cuMemRelease(handle))


way("cuMemCreate", map_memory, unmap_memory)


def array(size):
    descriptor = cu.CUDA_ARRAY3D_DESCRIPTOR()
    descriptor.Width, descriptor.Height, descriptor.Depth = 4096, size // 4096 // 4, 0
    descriptor.Format, descriptor.NumChannels = cu.CUarray_format.CU_AD_FORMAT_FLOAT, 1
    return do(cu.cuArray3DCreate(descriptor))


way("cuArray3DCreate", array, lambda one: do(cu.cuArrayDestroy(one)))


def graph_memory(size):
    graph = do(cu.cuGraphCreate(0))
    node = cu.CUDA_MEM_ALLOC_NODE_PARAMS()
    node.poolProps.allocType = cu.CUmemAllocationType.CU_MEM_ALLOCATION_TYPE_PINNED
    node.poolProps.location = location
    node.bytesize = size
    do(cu.cuGraphAddMemAllocNode(graph, None, 0, node))
    try:
        executable = do(cu.cuGraphInstantiate(graph, 0))
        try:
            do(cu.cuGraphLaunch(executable, stream))
        finally:
            do(cu.cuGraphExecDestroy(executable))
        do(cu.cuStreamSynchronize(stream))
    finally:
        do(cu.cuGraphDestroy(graph))
    return int(node.dptr)


way("cuGraphAddMemAllocNode", graph_memory, lambda p: do(cu.cuMemFree(p)))

numbers = np.arange(1 << 20, dtype=np.float32)
back = np.zeros_like(numbers)
memory = do(cu.cuMemAlloc(numbers.nbytes))
do(cu.cuMemcpyHtoDAsync(memory, numbers.ctypes.data, numbers.nbytes, stream))
do(cu.cuMemcpyDtoHAsync(back.ctypes.data, memory, numbers.nbytes, stream))
do(cu.cuStreamSynchronize(stream))
same("copied back", bool((numbers == back).all()))

module = do(cu.cuModuleLoadData(PTX))
kernel = do(cu.cuModuleGetFunction(module, b"busy_us"))
pace(
    "cuLaunchKernel",
    lambda us: do(cu.cuLaunchKernel(kernel, 80, 1, 1, 128, 1, 1, 0, stream, ((us,), (ctypes.c_uint64,)), 0)),
    lambda: do(cu.cuStreamSynchronize(stream)),
)
