"""cuda.core.checkpoint: a process that another one suspends in the middle of its work, and resumes."""

import ctypes
import subprocess
import sys

import cuda.core as core
from cuda.bindings import driver as cu
from cuda.core.checkpoint import Process
from report import MIB, PTX, same

SIZE = 256 * MIB
WORD = 0x5EED


def work():
    """Writes a word to GPU memory; for each line on its input, launches a kernel and prints the word again."""
    device = core.Device(0)
    device.set_current()
    stream = device.create_stream()
    buffer = device.memory_resource.allocate(SIZE, stream=stream)
    kernel = core.ObjectCode.from_ptx(PTX.rstrip(b"\0")).get_kernel("busy_us")
    config = core.LaunchConfig(grid=80, block=128)
    cu.cuMemsetD32(int(buffer.handle), WORD, SIZE // 4)
    print("ready", flush=True)
    for _ in sys.stdin:
        core.launch(stream, config, kernel, ctypes.c_uint64(1000))
        stream.sync()
        word = ctypes.c_uint32()
        cu.cuMemcpyDtoH(ctypes.addressof(word), int(buffer.handle), 4)
        print(hex(word.value), flush=True)


def suspend_and_resume():
    child = subprocess.Popen(
        [sys.executable, __file__, "work"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    child.stdout.readline()

    def step():
        child.stdin.write("go\n")
        child.stdin.flush()

    process = Process(child.pid)
    same("state at first", str(process.state))
    same("thread of the restore is there", process.restore_thread_id > 0)
    process.lock(timeout_ms=60_000)
    same("state when locked", str(process.state))
    process.checkpoint()
    same("state when checkpointed", str(process.state))
    step()
    process.restore()
    same("state when restored", str(process.state))
    process.unlock()
    same("state at last", str(process.state))
    same("word after the restore", child.stdout.readline().strip())
    step()
    same("word of the next step", child.stdout.readline().strip())
    child.stdin.close()
    same("end of the process", child.wait())
    try:
        same("state of an ended process", str(process.state))
    except Exception as error:
        same("state of an ended process", str(error).split(":")[0])


if len(sys.argv) > 1:
    work()
else:
    suspend_and_resume()
