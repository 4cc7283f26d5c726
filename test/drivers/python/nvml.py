"""What nvidia-ml-py says of the system; no answer needs a GPU."""

import pynvml

try:
    pynvml.nvmlInit()
except pynvml.NVMLError as error:
    print(error)
for name in sorted(dir(pynvml)):
    if name.startswith("nvmlSystemGet"):
        try:
            print(name, getattr(pynvml, name)())
        except Exception as error:
            print(name, type(error).__name__, error)
