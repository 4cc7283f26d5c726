"""Writes the files of one slice in the format of native/include/vgpu_abi.h: `limits.py DIRECTORY UUID SHARE [MEMORY_BYTES]`."""
import os
import struct
import sys

HEADER = struct.Struct("<QIIIIII64s32x")
IDENTITY = struct.Struct("<64s32s32x")
LIVE = struct.Struct("<QQQIIIIII16x")
DEVICES = 16
MAGIC = 0x544D494C55504756


def limits(uuid: str, share: int, memory: int) -> bytes:
    size = HEADER.size + DEVICES * IDENTITY.size + 2 * DEVICES * LIVE.size
    file = bytearray(HEADER.pack(MAGIC, 1, size, 1, 1, 2, 0, b"gpu-run"))
    file += IDENTITY.pack(uuid.encode(), b"").ljust(DEVICES * IDENTITY.size, b"\0")
    file += LIVE.pack(memory, 0, 0, share, 0, 0, 0, 0, 0)
    return bytes(file.ljust(size, b"\0"))


def main() -> None:
    directory, uuid, share = sys.argv[1], sys.argv[2], int(sys.argv[3])
    memory = int(sys.argv[4]) if len(sys.argv) > 4 else 0
    os.makedirs(os.path.join(directory, "usage"), exist_ok=True)
    with open(os.path.join(directory, "vgpu.limits"), "wb") as file:
        file.write(limits(uuid, share, memory))
    # Results of an earlier run do not belong to this one.
    usage = os.path.join(directory, "usage", "vgpu.usage")
    if os.path.exists(usage):
        os.remove(usage)


if __name__ == "__main__":
    main()
