"""cuda.core: every memory resource, events, a share, graphs."""

import ctypes

import cuda.core as core
from cuda.bindings import driver as cu
from report import LIMIT_MIB, MIB, PTX, fill, pace, same, total

device = core.Device(0)
device.set_current()
stream = device.create_stream()
same("name", device.name)
same("uuid", device.uuid)
same("compute capability", tuple(device.compute_capability))
total("cuMemGetInfo", cu.cuMemGetInfo()[2])


def is_refusal(error):
    return "OUT_OF_MEMORY" in str(error) or isinstance(error, MemoryError)


def way(name, resource):
    """A memory resource: as much as it gives, and all of it back."""
    before = cu.cuMemGetInfo()[1]
    for buffer in fill(name, lambda size: resource.allocate(size, stream=stream), is_refusal):
        buffer.close(stream)
    stream.sync()
    cu.cuMemPoolTrimTo(cu.cuDeviceGetMemPool(0)[1], 0)
    if resource is not device.memory_resource and hasattr(resource, "close"):
        resource.close()
    same(f"{name} free again", (before - cu.cuMemGetInfo()[1]) // MIB)


way("the device's resource", device.memory_resource)
limited = core.DeviceMemoryResourceOptions(max_size=4096 * MIB)
way("DeviceMemoryResource", core.DeviceMemoryResource(device, limited))
shared = core.DeviceMemoryResourceOptions(ipc_enabled=True, max_size=4096 * MIB)
way("DeviceMemoryResource for other processes", core.DeviceMemoryResource(device, shared))
way("ManagedMemoryResource", core.ManagedMemoryResource(core.ManagedMemoryResourceOptions(preferred_location=0)))

# Pinned memory of the host does not count.
pinned = core.PinnedMemoryResource(core.PinnedMemoryResourceOptions())
held = [pinned.allocate(50 * MIB, stream=stream) for _ in range(2 * LIMIT_MIB // 50)]
same("PinnedMemoryResource", len(held))

kernel = core.ObjectCode.from_ptx(PTX.rstrip(b"\0")).get_kernel("busy_us")
config = core.LaunchConfig(grid=80, block=128)
pace("launch", lambda us: core.launch(stream, config, kernel, ctypes.c_uint64(us)), stream.sync)

builder = device.create_graph_builder()
builder.begin_building()
for _ in range(10):
    core.launch(builder, config, kernel, ctypes.c_uint64(2000))
graph = builder.end_building().complete()
pace("graphs", lambda us: graph.launch(stream), stream.sync, kernels=50, microseconds=20000)

# The last: this resource takes a second reference when it frees and gives only one back.
virtual = core.VirtualMemoryResource(device)
held = fill("VirtualMemoryResource", virtual.allocate, is_refusal)
