"""tinygrad on CUDA's driver and NVRTC: tensors up to the limit, kernels that it compiles, graphs."""

import os

os.environ["DEV"] = "CUDA"
os.environ["CUDA"] = "1"
from report import fill, same
from tinygrad import Device, Tensor, TinyJit, dtypes

gpu = Device["CUDA"]
same("device", f"{type(gpu).__name__} {getattr(gpu, 'arch', '')}")


def tensor(size):
    made = Tensor.empty(size, dtype=dtypes.uint8).contiguous().realize()
    made.uop.buffer.ensure_allocated()
    return made


held = fill("Tensor.empty", tensor, lambda error: isinstance(error, MemoryError))
held.clear()

numbers = Tensor.arange(1000).contiguous().realize()
gpu.synchronize()
same("compiled by NVRTC", (numbers + 1).realize().shape)


@TinyJit
def step(a, b):
    for _ in range(6):
        a = (a @ b).relu() * 0.5
    return a.realize()


a = Tensor.empty(256, 256).contiguous().realize()
b = Tensor.empty(256, 256).contiguous().realize()
for _ in range(20):
    step(a, b)
gpu.synchronize()
same("graphs of TinyJit", "done")
