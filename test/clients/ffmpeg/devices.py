"""FFmpeg's libavutil: a device of CUDA is made, dropped and made again, which closes the driver and opens it again."""

import ctypes

from report import fill, same

AV_HWDEVICE_TYPE_CUDA = 2
SUCCESS, OUT_OF_MEMORY = 0, 2

avutil = ctypes.CDLL("libavutil.so.57")
avutil.av_hwdevice_get_type_name.restype = ctypes.c_char_p
same("device type", avutil.av_hwdevice_get_type_name(AV_HWDEVICE_TYPE_CUDA).decode())

for round in range(3):
    device = ctypes.c_void_p()
    same(f"device {round}", avutil.av_hwdevice_ctx_create(ctypes.byref(device), AV_HWDEVICE_TYPE_CUDA, b"0", None, 0))
    avutil.av_buffer_unref(ctypes.byref(device))

# What a decoder takes afterwards is still held to the limit.
cuda = ctypes.CDLL("libcuda.so.1")
same("cuInit", cuda.cuInit(0))
context = ctypes.c_void_p()
same("context", cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0))
cuda.cuCtxSetCurrent(context)


class Refused(Exception):
    pass


def allocate(size):
    pointer = ctypes.c_uint64()
    result = cuda.cuMemAlloc_v2(ctypes.byref(pointer), ctypes.c_size_t(size))
    if result == OUT_OF_MEMORY:
        raise Refused
    assert result == SUCCESS, result
    return pointer


held = fill("cuMemAlloc after the devices", allocate, lambda error: isinstance(error, Refused))
