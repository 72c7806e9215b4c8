"""How long a whole call takes by the model: its kernels on the device, what the host needs to launch them, and a CUDA graph's part.

A replay launches once, whatever the graph holds; before and after it copies inputs in and results out. Its kernels keep the shortest launch
interval of the sheet, so what a capture saves is the host's time and nothing else.

A few numbers that a forward makes a tensor of are written by a kernel of their own. More of them are copied from the host's memory, and the
host waits until the device has come to that. Nothing that follows has a head start: the device waits for each launch.
"""

from __future__ import annotations

from tools.codegen import OperatorGraph, Schedule
from tools.codegen.schedule.copied_numbers import copies_numbers, written_numbers
from tools.codegen.schedule.cuda_graph import can_capture, generated_launches, kernels, launches
from tools.codegen.schedule.together import spared
from tools.cost.estimate import host_us, issuing_us
from tools.hardware import rates
from tools.records import ITEM_BYTES, HardwareSheet

NEARLY = 0.5
"""Share of the device's time from which on launching may still be what a call waits for, so that a capture is worth a trial."""


def call_us(
    graph: OperatorGraph, schedule: Schedule, device_us: float, sheet: HardwareSheet, launched: int = 0, *, in_use: bool = False
) -> float:
    """Time of a call whose kernels take `device_us`, microseconds: the longer of device and host.

    Generated regions launch `launched` kernels together, or one each where more is not known. A timed call has a head start; `in_use` none.
    """
    device_us += written_numbers(graph, schedule) * rates.KERNEL_US
    if schedule.captured:
        return device_us + replay_us(graph, sheet)
    every, generated = counted(graph, schedule, launched)
    if copies_numbers(graph, schedule):
        return waited_us(device_us, every, generated)
    return max(device_us, issuing_us(every, generated) if in_use else host_us(every, sheet, generated))


def waited_us(device_us: float, every: int, generated: int) -> float:
    """Time of a call whose host waits for a copy before it issues `every` launch: the longer of host and device, and one of the other's.

    Six channels rounded to levels that are written in the code took 82 µs in a kernel that reads them, modelled 65 with this, 10 without;
    13 µs with the levels among its instructions (an H100, 2026-11-26; codebooks/scalar_codes of the wild suite).
    """
    issuing, each = issuing_us(every, generated), max(1, every)
    return rates.HOST_US + max(device_us + issuing / each, issuing + device_us / each)


def counted(graph: OperatorGraph, schedule: Schedule, launched: int = 0) -> tuple[int, int]:
    """Count the launches of a call that is not captured, and those of generated kernels among them."""
    regions = kernels(graph, schedule.regions, generated_launches) - spared(graph, schedule)
    launched, numbers = max(launched, regions), written_numbers(graph, schedule)
    return launches(graph, schedule) - regions + launched + numbers, launched + numbers


def replay_us(graph: OperatorGraph, sheet: HardwareSheet) -> float:
    """Time of a replay besides the graph's own kernels: one launch, and a copy of each input and each result."""
    metas = [graph.inputs[name] for name in graph.arguments if name in graph.inputs]
    metas += [graph.meta(ref) for ref in graph.returned]
    copies = (2 * meta.numel * ITEM_BYTES[meta.dtype] / rates.copy_gbps(sheet) / 1e3 for meta in metas)
    return sheet.launch_us + sum(max(sheet.launch_us, copy) for copy in copies)


def worth_capturing(graph: OperatorGraph, schedule: Schedule, device_us: float, launched: int = 0) -> bool:
    """Whether a forward can be captured, and its launches may be what it waits for, in use if not where it is timed."""
    return can_capture(graph, schedule) and issuing_us(*counted(graph, schedule, launched)) >= NEARLY * device_us
