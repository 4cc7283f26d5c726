"""What every client program of Python prints; test/clients/report.ts reads it."""

import os
import sys
import time

MIB = 1 << 20
LIMIT_MIB = int(os.environ["CLIENT_LIMIT_MIB"])
STEP_MIB = 50

#: A kernel of the simulated driver that takes as many microseconds of the GPU as its parameter says.
PTX = b".version 8.0\n.target sm_70\n.address_size 64\n.visible .entry busy_us(.param .u64 time) { ret; }\n\0"


def same(what, value):
    """Something that must not depend on the slice."""
    print(f"is {what}: {value}", flush=True)


def total(what, size):
    print(f"total {what}: {size // MIB}", flush=True)


def skip(what, why):
    print(f"skip {what}: {why}", flush=True)


def fill(way, allocate, is_refusal, keep=None):
    """Allocates until it is refused, or twice the slice is had; answers what was allocated, or fills `keep`."""
    held = [] if keep is None else keep
    reason = "all"
    while len(held) * STEP_MIB < 2 * LIMIT_MIB:
        try:
            held.append(allocate(STEP_MIB * MIB))
        except Exception as error:
            reason = "refused" if is_refusal(error) else f"{type(error).__name__} {error}".splitlines()[0]
            break
    print(f"got {way}: {len(held) * STEP_MIB} {reason}", flush=True)
    return held


def pace(what, launch, synchronize, kernels=500, microseconds=2000):
    """Launches kernels of a known length and waits for them: how long that took shows the share."""
    launch(microseconds)
    synchronize()
    start = time.monotonic()
    for _ in range(kernels):
        launch(microseconds)
    synchronize()
    wall = (time.monotonic() - start) * 1000
    print(f"pace {what}: {kernels * microseconds / 1000:.0f} {wall:.0f}", flush=True)


def hold():
    """Keeps everything until the other processes of the container have theirs."""
    print("holding", flush=True)
    sys.stdin.read()
