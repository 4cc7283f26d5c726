"""A PyTorch load generator: computes matrix products as fast as the library lets it and prints their number per second. `torch_tenant.py SECONDS SIZE`."""
import sys
import time

import torch


def main() -> None:
    seconds, size = float(sys.argv[1]), int(sys.argv[2])
    a = torch.randn(size, size, device="cuda", dtype=torch.float16)
    b = torch.randn(size, size, device="cuda", dtype=torch.float16)
    warm_until = time.monotonic() + 2
    while time.monotonic() < warm_until:
        torch.mm(a, b)
        torch.cuda.synchronize()
    done = 0
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        for _ in range(16):
            torch.mm(a, b)
        torch.cuda.synchronize()
        done += 16
    print(f"{done / seconds:.3f}")


if __name__ == "__main__":
    main()
