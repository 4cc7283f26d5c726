"""numba-cuda: arrays up to the limit, pinned and managed memory, streams, a kernel."""

import warnings

import numpy as np
from numba import cuda
from numba.cuda.cudadrv import driver
from report import PTX, fill, pace, same, total

warnings.simplefilter("ignore")

gpu = cuda.get_current_device()
same("name", gpu.name)
same("compute capability", gpu.compute_capability)
same("uuid", gpu.uuid)
context = cuda.current_context()
_, size = context.get_memory_info()
total("get_memory_info", size)


def is_refusal(error):
    return "OUT_OF_MEMORY" in str(error)


for name, make in (
    ("device_array", lambda n: cuda.device_array(n, np.uint8)),
    ("managed_array", lambda n: cuda.managed_array(n, np.uint8)),
):
    held = fill(name, make, is_refusal)
    held.clear()
    context.deallocations.clear()

numbers = np.arange(1 << 20, dtype=np.float32)
stream = cuda.stream()
on_gpu = cuda.to_device(numbers, stream=stream)
back = on_gpu.copy_to_host(stream=stream)
stream.synchronize()
same("copied back", bool((numbers == back).all()))
same("pinned and mapped", cuda.pinned_array(1000).size + cuda.mapped_array(1000).size)

first, last = cuda.event(), cuda.event()
first.record(stream)
last.record(stream)
last.synchronize()
same("events in order", first.elapsed_time(last) >= 0)


@cuda.jit
def busy_us_2000(array):
    i = cuda.grid(1)
    if i < array.size:
        array[i] += 1


# Compiled by NVVM; a kernel whose name the simulated driver knows nothing of takes 10 us for each wave of blocks.
pace(
    "a kernel of numba",
    lambda us: busy_us_2000[80 * 2048 // 256 * 25, 256, stream](on_gpu),
    stream.synchronize,
    kernels=4000,
    microseconds=250,
)
cuda.close()
