"""Halide's CUDA back end: device memory up to the limit, and a pipeline that runs again and again."""

import os
import subprocess
import sys
import time

import halide as hl

LIMIT_MIB = int(os.environ['CLIENT_LIMIT_MIB'])
MIB = 2**20
STEP = 50
# Kernels that the simulated driver does not know take 10 us for each wave of 80 blocks.
THREADS = 128
BLOCKS = 80 * 100
LAUNCHES = 500
LAUNCH_MS = 1

target = hl.get_host_target().with_feature(hl.TargetFeature.CUDA)


def pipeline():
    x, block, thread = hl.Var('x'), hl.Var('block'), hl.Var('thread')
    function = hl.Func('twice')
    function[x] = hl.cast(hl.Float(32), x) * 2
    function.gpu_tile(x, block, thread, THREADS)
    return function


def fill():
    """Halide ends the process when an allocation fails, so another process allocates and says how much it has."""
    child = subprocess.run([sys.executable, __file__, 'fill'], capture_output=True, text=True)
    said = child.stdout + child.stderr
    held = [line for line in child.stdout.splitlines() if line.isdigit()]
    reason = 'all' if child.returncode == 0 else 'refused' if 'CUDA_ERROR_OUT_OF_MEMORY' in said else repr(said[-80:])
    print(f'got device_malloc: {held[-1] if held else 0} {reason}')


def hold():
    held = []
    while len(held) * STEP < 2 * LIMIT_MIB:
        buffer = hl.Buffer(hl.UInt(8), [STEP * MIB])
        buffer.device_malloc(target)
        held.append(buffer)
        print(len(held) * STEP, flush=True)


def pace():
    function = pipeline()
    function.compile_jit(target)
    out = hl.Buffer(hl.Float(32), [THREADS * BLOCKS])
    function.realize(out, target)
    out.device_sync()
    print('is result on the GPU:', out.device_dirty())
    start = time.monotonic()
    for _ in range(LAUNCHES):
        function.realize(out, target)
    out.device_sync()
    print(f'pace realize: {LAUNCHES * LAUNCH_MS} {int((time.monotonic() - start) * 1000)}')


if sys.argv[1:] == ['fill']:
    hold()
else:
    fill()
    pace()
