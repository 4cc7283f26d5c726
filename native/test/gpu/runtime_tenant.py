"""Measures how much memory clients of the CUDA runtime get under a limit. The simulated driver cannot run them.
`runtime_tenant.py torch|cupy|nccl LIMIT_MIB` prints one line; exit code 77 if the client is not installed."""
import sys

STEP_MIB = 64


def fill(allocate, is_refusal, limit):
    """MiB allocated before memory was refused; twice the limit if it never was."""
    held = []
    while len(held) * STEP_MIB < 2 * limit:
        try:
            held.append(allocate(STEP_MIB << 20))
        except Exception as error:
            if not is_refusal(error):
                raise
            break
    return len(held) * STEP_MIB


def torch_memory(limit):
    import torch

    got = fill(
        lambda size: torch.empty(size, dtype=torch.uint8, device="cuda"),
        lambda error: isinstance(error, torch.cuda.OutOfMemoryError),
        limit,
    )
    return got, torch.cuda.mem_get_info()[1] >> 20


def cupy_memory(limit):
    import cupy

    got = fill(
        lambda size: cupy.empty(size, dtype=cupy.uint8),
        lambda error: isinstance(error, cupy.cuda.memory.OutOfMemoryError),
        limit,
    )
    return got, cupy.cuda.runtime.memGetInfo()[1] >> 20


def nccl_memory(limit):
    """A collective of one process: the channels and buffers of NCCL are charged as well."""
    import tempfile

    import torch
    import torch.distributed as group

    with tempfile.NamedTemporaryFile() as store:
        group.init_process_group("nccl", init_method=f"file://{store.name}.nccl", rank=0, world_size=1)
        ones = torch.ones(1 << 20, device="cuda")
        group.all_reduce(ones)
        torch.cuda.synchronize()
        assert float(ones.sum()) == 1 << 20
        got, total = torch_memory(limit)
        group.destroy_process_group()
    return got, total


def main() -> int:
    client, limit = sys.argv[1], int(sys.argv[2])
    try:
        got, total = {"torch": torch_memory, "cupy": cupy_memory, "nccl": nccl_memory}[client](limit)
    except ImportError as missing:
        print(f"{client}: {missing}")
        return 77
    held = 0 < got <= limit and total == limit
    print(f"{client}: got {got} MiB of {limit}, which it shows as {total} MiB")
    return 0 if held else 1


if __name__ == "__main__":
    sys.exit(main())
