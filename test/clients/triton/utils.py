"""Triton's NVIDIA driver: a module of C that it compiles and links with -lcuda at run time, and what it asks the GPU by it."""

import ctypes

from report import same
from triton.backends.nvidia import driver

cuda = ctypes.CDLL("libcuda.so.1")
same("cuInit", cuda.cuInit(0))
context = ctypes.c_void_p()
cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0)
cuda.cuCtxSetCurrent(context)
utils = driver.CudaUtils()
same("properties", utils.get_device_properties(0))
