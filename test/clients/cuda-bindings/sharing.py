"""cuda.bindings.driver: memory that two processes of a container share counts once."""

import ctypes
import multiprocessing

from cuda.bindings import driver as cu
from report import LIMIT_MIB, MIB, same

# With a context in each process there is room for it once, and not twice.
HELD_MIB = LIMIT_MIB * 3 // 10


def start():
    assert cu.cuInit(0)[0] == cu.CUresult.CUDA_SUCCESS
    cu.cuCtxSetCurrent(cu.cuDevicePrimaryCtxRetain(0)[1])


def open_memory(handle, answers, done):
    start()
    ipc = cu.CUipcMemHandle()
    ctypes.memmove(ipc.getPtr(), handle, len(handle))
    result, pointer = cu.cuIpcOpenMemHandle(ipc, cu.CUipcMem_flags.CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS.value)
    size = cu.cuMemGetAddressRange(pointer)[2] // MIB
    answers.put((result.name, size, cu.cuMemAlloc(100 * MIB)[0].name))
    done.wait()
    cu.cuIpcCloseMemHandle(pointer)


if __name__ == "__main__":
    spawn = multiprocessing.get_context("spawn")
    answers, done = spawn.Queue(), spawn.Event()
    start()
    result, memory = cu.cuMemAlloc(HELD_MIB * MIB)
    assert result == cu.CUresult.CUDA_SUCCESS, result
    result, handle = cu.cuIpcGetMemHandle(memory)
    assert result == cu.CUresult.CUDA_SUCCESS, result
    other = spawn.Process(target=open_memory, args=(ctypes.string_at(handle.getPtr(), 64), answers, done))
    other.start()
    opened, size, more = answers.get(timeout=60)
    same("opened in another process", f"{opened}, {size} MiB")
    same("100 MiB more there", more)
    done.set()
    other.join()
    same("freed", cu.cuMemFree(memory)[0].name)
