"""Programs that people run on a GPU: `programs.py NAME` checks its own result. Exit code 77: a package is not installed."""
import sys


def train() -> str:
    """Steps of a small network: kernels of many durations, the caching allocator, cuBLAS and cuDNN."""
    import torch

    model = torch.nn.Sequential(
        torch.nn.Conv2d(3, 64, 3, padding=1), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(64 * 64 * 64, 10)
    ).cuda()
    optimizer = torch.optim.AdamW(model.parameters())
    images = torch.randn(64, 3, 64, 64, device="cuda")
    labels = torch.randint(0, 10, (64,), device="cuda")
    first = last = 0.0
    for step in range(60):
        loss = torch.nn.functional.cross_entropy(model(images), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        last = loss.item()
        first = first or last
    assert last < first, (first, last)
    return f"loss {first:.2f} -> {last:.2f}"


def graphs() -> str:
    import torch

    x = torch.ones(1 << 20, device="cuda")
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        for _ in range(3):
            y = x * 2 + 1
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = x * 2 + 1
    for value in range(100):
        x.fill_(value)
        graph.replay()
    torch.cuda.synchronize()
    assert float(y[0]) == 199
    return "100 replays"


def triton() -> str:
    import torch
    import triton
    import triton.language as tl

    @triton.jit
    def add(a, b, out, n, SIZE: tl.constexpr):
        at = tl.program_id(0) * SIZE + tl.arange(0, SIZE)
        tl.store(out + at, tl.load(a + at, at < n) + tl.load(b + at, at < n), at < n)

    a = torch.arange(100_000, device="cuda", dtype=torch.float32)
    out = torch.empty_like(a)
    add[(triton.cdiv(100_000, 1024),)](a, a, out, 100_000, SIZE=1024)
    assert torch.equal(out, a + a)
    return "equal"


def jax() -> str:
    import jax
    import jax.numpy as jnp

    x = jnp.ones((2048, 2048))
    value = float((x @ x).sum())
    assert value == 2048.0**3, value
    return str(jax.devices()[0].memory_stats()["bytes_limit"] >> 20) + " MiB for XLA"


def nvml() -> str:
    """What nvidia-smi and every exporter ask for."""
    import pynvml

    pynvml.nvmlInit()
    gpu = pynvml.nvmlDeviceGetHandleByIndex(0)
    memory = pynvml.nvmlDeviceGetMemoryInfo(gpu)
    assert pynvml.nvmlDeviceGetCount() == 1 and memory.total == 12288 << 20, memory.total
    return f"{pynvml.nvmlDeviceGetName(gpu)} of {memory.total >> 20} MiB, {memory.used >> 20} used"


def killed() -> str:
    """The memory of a killed process is free for the next one of the container."""
    import subprocess
    import time

    hold = "import torch, time; x = torch.empty(8 << 30, dtype=torch.uint8, device='cuda'); print('held', flush=True); time.sleep(60)"
    for _ in range(2):
        holder = subprocess.Popen([sys.executable, "-c", hold], stdout=subprocess.PIPE, text=True)
        assert holder.stdout.readline() == "held\n"
        holder.kill()
        holder.wait()
    import torch

    until = time.monotonic() + 2
    while True:
        try:
            torch.empty(8 << 30, dtype=torch.uint8, device="cuda")
            return "8 GiB three times"
        except torch.cuda.OutOfMemoryError:
            assert time.monotonic() < until, "the memory did not come back within 2 s"


def pools() -> str:
    """The expandable segments of PyTorch's allocator (cuMemCreate) and its asynchronous allocator (pools)."""
    import os
    import subprocess

    fill = (
        "import torch; held = []\n"
        "try:\n"
        "    while len(held) < 400: held.append(torch.empty(64 << 20, dtype=torch.uint8, device='cuda'))\n"
        "except torch.cuda.OutOfMemoryError: pass\n"
        "print(len(held) * 64, torch.cuda.mem_get_info()[1] >> 20)"
    )
    said = []
    for setting in ("expandable_segments:True", "backend:cudaMallocAsync"):
        environment = {**os.environ, "PYTORCH_CUDA_ALLOC_CONF": setting, "PYTORCH_ALLOC_CONF": setting}
        output = subprocess.run([sys.executable, "-c", fill], env=environment, capture_output=True, text=True)
        assert output.returncode == 0, output.stderr[-600:]
        got, total = map(int, output.stdout.split())
        assert 0 < got <= total, output.stdout
        said.append(f"{setting} {got} of {total} MiB")
    return ", ".join(said)


def main() -> int:
    name = sys.argv[1]
    try:
        print(f"{name}: {globals()[name]()}")
    except ImportError as missing:
        print(f"{name}: {missing}")
        return 77
    return 0


if __name__ == "__main__":
    # A function is named like the package that it uses; the package is imported from site-packages.
    sys.exit(main())
