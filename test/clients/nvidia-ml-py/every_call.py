"""nvidia-ml-py: every call that asks about the system or one GPU, and what memory they show."""

import inspect

import pynvml as nvml
from report import same, total

nvml.nvmlInit()
gpu = nvml.nvmlDeviceGetHandleByIndex(0)

#: Arguments behind the handle, for calls that need more than it.
ARGUMENTS = {
    "nvmlDeviceGetAPIRestriction": (0,),
    "nvmlDeviceGetApplicationsClock": (0,),
    "nvmlDeviceGetClock": (0, 0),
    "nvmlDeviceGetClockInfo": (0,),
    "nvmlDeviceGetCpuAffinity": (1,),
    "nvmlDeviceGetDefaultApplicationsClock": (0,),
    "nvmlDeviceGetDetailedEccErrors": (0, 0),
    "nvmlDeviceGetFanSpeed_v2": (0,),
    "nvmlDeviceGetFieldValues": ([1, 82, 83],),
    "nvmlDeviceGetInforomVersion": (0,),
    "nvmlDeviceGetMaxClockInfo": (0,),
    "nvmlDeviceGetMemoryErrorCounter": (0, 0, 0),
    "nvmlDeviceGetNvLinkState": (0,),
    "nvmlDeviceGetPcieThroughput": (0,),
    "nvmlDeviceGetRetiredPages": (0,),
    "nvmlDeviceGetTemperature": (0,),
    "nvmlDeviceGetTemperatureThreshold": (0,),
    "nvmlDeviceGetTotalEccErrors": (0, 0),
    "nvmlDeviceGetViolationStatus": (0,),
}
#: What these say depends on the moment or the slice; that they answer is enough.
VARIES = ("MemoryInfo", "BAR1", "Energy", "Utilization", "Processes", "Temperature", "PowerUsage", "FieldValues", "Throughput")


def readable(value):
    """NVML's structures as text; handles as what they are, since their addresses change from process to process."""
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(readable(one) for one in value) + "]"
    if hasattr(value, "_fields_"):
        return "{" + ", ".join(f"{field[0]}={readable(getattr(value, field[0]))}" for field in value._fields_) + "}"
    if hasattr(value, "contents") or "0x" in repr(value):
        return type(value).__name__
    return str(value)


def answer(call, *arguments):
    try:
        value = call(*arguments)
    except nvml.NVMLError as error:
        return f"error {error.value}"
    except Exception as error:
        return type(error).__name__
    return "answered" if any(word in call.__name__ for word in VARIES) else readable(value)


unknown = []
for name, call in sorted(inspect.getmembers(nvml, inspect.isfunction)):
    if not name.startswith(("nvmlDeviceGet", "nvmlDeviceIs", "nvmlSystemGet", "nvmlUnitGet", "nvmlGpmQuery")):
        continue
    needed = [one for one in inspect.signature(call).parameters.values() if one.default is one.empty and one.kind < 2]
    if name in ARGUMENTS:
        said = answer(call, gpu, *ARGUMENTS[name])
    elif len(needed) == 0:
        said = answer(call)
    elif len(needed) == 1 and needed[0].name in ("handle", "device"):
        said = answer(call, gpu)
    else:
        continue
    if said == f"error {nvml.NVML_ERROR_FUNCTION_NOT_FOUND}":
        unknown.append(name)
    same(name, said)
same("calls that the library does not have", len(unknown))

total("nvmlDeviceGetMemoryInfo", nvml.nvmlDeviceGetMemoryInfo(gpu).total)
total("nvmlDeviceGetMemoryInfo, version 2", nvml.nvmlDeviceGetMemoryInfo(gpu, version=nvml.nvmlMemory_v2).total)

# The library goes and comes back, as monitors do.
for _ in range(3):
    nvml.nvmlShutdown()
    nvml.nvmlInit()
total("opened again", nvml.nvmlDeviceGetMemoryInfo(nvml.nvmlDeviceGetHandleByIndex(0)).total)
