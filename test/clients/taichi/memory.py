"""Taichi on CUDA's driver: arrays up to the limit, a kernel that it compiles."""

import taichi as ti
from report import fill, same

ti.init(arch=ti.cuda, log_level=ti.WARN, offline_cache=False, device_memory_GB=0.3)
same("architecture", ti.lang.impl.current_cfg().arch)


@ti.kernel
def count(array: ti.types.ndarray()):
    for i in range(array.shape[0]):
        array[i] = i


count(ti.ndarray(ti.u8, shape=1000))
ti.sync()
held = fill("ndarray", lambda size: ti.ndarray(ti.u8, shape=size), lambda error: "memory" in str(error).lower())
same("synchronized", ti.sync())
