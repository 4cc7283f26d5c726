"""Dr.Jit: memory up to the limit and kernels, in the first thread and in a worker."""

import threading

import drjit as dr
from drjit.cuda import Float, UInt32
from report import MIB, fill, pace, same

# An addition of so many numbers takes 2 ms of the simulated GPU.
NUMBERS = 1 << 24


def allocate(size):
    """Dr.Jit rounds sizes to powers of two."""
    array = dr.opaque(UInt32, 7, size // 4)
    dr.eval(array)
    return array


def work(where):
    one = dr.opaque(Float, 1)
    state = {"sum": dr.opaque(Float, 0, NUMBERS)}

    def launch(_):
        state["sum"] = state["sum"] + one
        dr.eval(state["sum"])

    pace(f"additions {where}", launch, dr.sync_thread)
    state.clear()
    fill(f"opaque {where}", allocate, lambda error: "out of memory" in str(error))
    dr.sync_thread()
    dr.flush_malloc_cache()


same("CUDA", dr.has_backend(dr.JitBackend.CUDA))
same("size of 50 MiB", len(allocate(50 * MIB)))
work("in the first thread")
worker = threading.Thread(target=work, args=("in a worker",))
worker.start()
worker.join()
