"""How long a whole call takes by the model: its kernels on the device, what the host needs to launch them, and a CUDA graph's part.

A replay launches once, whatever the graph holds; before and after it copies inputs in and results out. Its kernels keep the shortest launch
interval of the sheet, so what a capture saves is the host's time and nothing else.
"""

from __future__ import annotations

from tools.codegen import OperatorGraph, Schedule
from tools.codegen.capture import can_capture, launches
from tools.profiling import rates
from tools.profiling.estimate import host_us
from tools.records import ITEM_BYTES, HardwareSheet

NEARLY = 0.2
"""Share of the device's time from which on launching may still be what a call waits for, so that a capture is worth a trial. `HOST_US` is
an assumption: on an H200 DenseNet-201, about 500 operators in 19.7 ms, took nearly four times as much an operator."""


def call_us(graph: OperatorGraph, schedule: Schedule, device_us: float, sheet: HardwareSheet) -> float:
    """Time of a call whose kernels take `device_us`, microseconds: the longer of device and host."""
    if schedule.captured:
        return device_us + replay_us(graph, sheet)
    return max(device_us, host_us(launches(graph, schedule), sheet))


def replay_us(graph: OperatorGraph, sheet: HardwareSheet) -> float:
    """Time of a replay besides the graph's own kernels: one launch, and a copy of each input and each result."""
    metas = [graph.inputs[name] for name in graph.arguments if name in graph.inputs]
    metas += [graph.meta(ref) for ref in graph.returned]
    copies = (2 * meta.numel * ITEM_BYTES[meta.dtype] / rates.copy_gbps(sheet) / 1e3 for meta in metas)
    return sheet.launch_us + sum(max(sheet.launch_us, copy) for copy in copies)


def worth_capturing(graph: OperatorGraph, schedule: Schedule, device_us: float, sheet: HardwareSheet) -> bool:
    """Whether a forward can be captured, and its launches may be what it waits for."""
    return can_capture(graph, schedule) and host_us(launches(graph, schedule), sheet) >= NEARLY * device_us
