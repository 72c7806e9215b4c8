"""Puts the evidence about one candidate, or about the reference, into a profile.

Figures by name. Of the call: `time_us`, `moved_bytes`, `compulsory_bytes`, `traffic_ratio`, `achieved_gbps`, `copy_share`
and `peak_share` (of a copy's and of the datasheet's bandwidth), `floor_us`, `floor_share`, `arithmetic_intensity`,
`compute_share`, `launches`, `launch_share`; where timed also `eager_us`, `compile_us`, `clock_mhz`, `power_w`. Of the kernel that takes
most of the call by the model: `heaviest_share`, `programs`, `waves`, `blocks_per_sm`, `occupancy`, `registers`, `spill_bytes`,
`shared_bytes`, `stack_bytes`, `widest_load_bytes`, `widest_store_bytes`, and `load_share` … `other_share` of its static instructions.
Where hardware counters were read, those of `ncu.METRICS` for one call: `dram_percent`, `sm_percent`, `tensor_percent`, `stall_…` and so on.
"""

from __future__ import annotations

import math

from tools.cost.estimate import LaunchCost, call_us, generated_launches, host_us, issued, launch_costs, reference_costs
from tools.cost.occupancy import waves
from tools.cost.recorded_launches import uses_tensor
from tools.cost.roofline import floor_us, loosest, matmul_dtype
from tools.hardware import peak_tflops
from tools.hardware.rates import copy_gbps
from tools.machine_code.sass import CLASSES
from tools.profiling.bottleneck import Facts, find_bottleneck
from tools.profiling.ncu import Counters
from tools.records import ROOT, Baselines, Evaluation, Figure, FigureSource, HardwareSheet, KernelResources, Problem, Profile, Timing

NOT_COUNTED = Counters()
"""Nobody asked for counters: nothing is missing."""
STATIC, MODEL, EVENTS = FigureSource.STATIC, FigureSource.MODEL, FigureSource.EVENTS


def profile_candidate(
    problem: Problem, evaluation: Evaluation, baselines: Baselines, sheet: HardwareSheet, counters: Counters = NOT_COUNTED
) -> Profile:
    """Profile a passing candidate: figures with their sources, and the bottleneck they imply on `sheet`.

    Figures of `counters` stand beside the static ones, and come first where a bottleneck is to be named. Where the evaluation has no
    time, the model's own is taken and a note says so. Where `sheet` is not the device that was timed, shares of its rates mean nothing:
    pass the sheet of the evaluation's target. Of a problem with several shapes it is of the one that takes most of the time.
    """
    problem, evaluation = evaluation.dominant(problem)
    costs = launch_costs(problem, evaluation.launches, evaluation.kernels, sheet)
    measured = evaluation.timing is not None
    time_us = evaluation.time_us or call_us(costs, sheet)
    heaviest = max(costs, key=lambda cost: cost.whole_us, default=None)
    facts = _facts(problem, time_us, measured, costs, heaviest, sheet)
    facts = facts._replace(counted={figure.name: figure.value for figure in counters.figures})
    bottleneck, evidence = find_bottleneck(facts)
    return Profile(
        candidate=evaluation.candidate,
        target=sheet.name,
        figures=(
            *_call_figures(problem, facts, measured, sheet),
            *_timing_figures(evaluation.timing),
            *(_kernel_figures(heaviest, costs, sheet) if heaviest else ()),
            *counters.figures,
        ),
        bottleneck=bottleneck,
        evidence=evidence,
        notes=(*_time_notes(evaluation, baselines), _kernel_note(heaviest), *_counter_notes(counters)),
    )


def profile_reference(problem: Problem, baselines: Baselines, sheet: HardwareSheet) -> Profile:
    """Profile eager execution of the reference: the profile of ROOT."""
    sample = baselines.samples.get("eager")
    measured = sample is not None
    time_us = sample.median_us if sample else baselines.best_us
    costs = reference_costs(problem, sheet)
    facts = _facts(problem, time_us, measured, costs, None, sheet)
    figures = list(_call_figures(problem, facts, measured, sheet))
    figures += [Figure(name=f"{name}_us", value=s.median_us, unit="us", source=EVENTS) for name, s in baselines.samples.items()]
    bottleneck, evidence = find_bottleneck(facts)
    return Profile(
        candidate=ROOT,
        target=sheet.name,
        figures=tuple(figures),
        bottleneck=bottleneck,
        evidence=evidence,
        notes=(
            "PyTorch's own kernels are not read: registers, occupancy and instructions of the reference are not known.",
            *baselines.notes,
        ),
    )


def _facts(
    problem: Problem, time_us: float, measured: bool, costs: tuple[LaunchCost, ...], heaviest: LaunchCost | None, sheet: HardwareSheet
) -> Facts:
    unit, allowed = _unit_tflops(problem, costs, sheet)
    return Facts(
        time_us=time_us,
        word="measured" if measured else "estimated",
        launches=sum(cost.times for cost in costs),
        host_us=host_us(issued(costs), sheet, generated=generated_launches(costs)),
        moved_bytes=sum(cost.work.launch.nbytes * cost.times for cost in costs),
        compulsory_bytes=problem.abi.compulsory_bytes,
        copy_gbps=copy_gbps(sheet),
        flops=problem.work.matmul_flops,
        unit_tflops=unit,
        allowed_tflops=allowed,
        spill_share=heaviest.spill_us / heaviest.device_us if heaviest else 0.0,
        spill_bytes=heaviest.work.kernel.spill_bytes if heaviest and heaviest.work.kernel else 0,
        programs=math.prod(heaviest.work.launch.grid) if heaviest and heaviest.work.launch.grid else 0,
        sms=sheet.sms,
        occupancy=heaviest.occupancy if heaviest else None,
    )


def _unit_tflops(problem: Problem, costs: tuple[LaunchCost, ...], sheet: HardwareSheet) -> tuple[float, float]:
    """Return the peak of the unit that the products use, and of the fastest that the policy allows."""
    policy, dtype = loosest(problem).name, matmul_dtype(problem)
    allowed = peak_tflops(sheet, policy, dtype, split=True)
    main = max(costs, key=lambda cost: cost.work.flops, default=None)
    if main is None or main.work.family is not None or main.work.kernel is None:
        return peak_tflops(sheet, policy, dtype), allowed
    return (allowed if uses_tensor(main.work.kernel) else sheet.fp32_tflops), allowed


def _call_figures(problem: Problem, facts: Facts, measured: bool, sheet: HardwareSheet) -> list[Figure]:
    timed = EVENTS if measured else MODEL
    floor = floor_us(problem, sheet)
    flops = problem.work.matmul_flops + problem.work.pointwise_flops
    return [
        Figure(name="time_us", value=facts.time_us, unit="us", source=timed),
        Figure(name="moved_bytes", value=facts.moved_bytes, unit="bytes", source=STATIC),
        Figure(name="compulsory_bytes", value=facts.compulsory_bytes, unit="bytes", source=STATIC),
        Figure(name="traffic_ratio", value=facts.traffic_ratio, unit="ratio", source=STATIC),
        Figure(name="achieved_gbps", value=facts.achieved_gbps, unit="GB/s", source=timed),
        Figure(name="copy_share", value=facts.copy_share, unit="ratio", source=timed),
        Figure(name="peak_share", value=facts.achieved_gbps / sheet.memory_gbps, unit="ratio", source=timed),
        Figure(name="floor_us", value=floor, unit="us", source=MODEL),
        Figure(name="floor_share", value=floor / facts.time_us, unit="ratio", source=MODEL),
        Figure(name="arithmetic_intensity", value=flops / max(facts.moved_bytes, 1), unit="flop/byte", source=STATIC),
        Figure(name="compute_share", value=facts.compute_share, unit="ratio", source=timed),
        Figure(name="launches", value=facts.launches, unit="count", source=STATIC),
        Figure(name="launch_share", value=facts.launch_share, unit="ratio", source=MODEL),
    ]


def _timing_figures(timing: Timing | None) -> list[Figure]:
    if timing is None:
        return []
    read = {"clock_mhz": (timing.clock_mhz, "MHz"), "power_w": (timing.power_w, "W")}
    read |= {f"{name}_us": (sample.median_us, "us") for name, sample in timing.baselines.items()}
    return [Figure(name=name, value=value, unit=unit, source=EVENTS) for name, (value, unit) in read.items() if value is not None]


def _kernel_figures(heaviest: LaunchCost, costs: tuple[LaunchCost, ...], sheet: HardwareSheet) -> list[Figure]:
    whole = sum(cost.whole_us for cost in costs)
    figures = [Figure(name="heaviest_share", value=heaviest.whole_us / whole, unit="ratio", source=MODEL)]
    if held := heaviest.occupancy:
        grid = heaviest.work.launch.grid
        figures += [
            Figure(name="programs", value=math.prod(grid), unit="count", source=STATIC),
            Figure(name="waves", value=waves(grid, held.blocks_per_sm, sheet), unit="count", source=MODEL),
            Figure(name="blocks_per_sm", value=held.blocks_per_sm, unit="count", source=MODEL),
            Figure(name="occupancy", value=held.fraction, unit="ratio", source=MODEL),
        ]
    return figures + (_resource_figures(heaviest.work.kernel) if heaviest.work.kernel else [])


def _resource_figures(kernel: KernelResources) -> list[Figure]:
    figures = [
        Figure(name="registers", value=kernel.registers, unit="count", source=STATIC),
        Figure(name="spill_bytes", value=kernel.spill_bytes, unit="bytes", source=STATIC),
        Figure(name="shared_bytes", value=kernel.shared_bytes, unit="bytes", source=STATIC),
        Figure(name="stack_bytes", value=kernel.stack_bytes, unit="bytes", source=STATIC),
    ]
    mix = kernel.instructions
    total = sum(mix.get(name, 0) for name in CLASSES)
    if total:
        figures += [Figure(name=f"{name}_share", value=mix.get(name, 0) / total, unit="ratio", source=STATIC) for name in CLASSES]
        figures += [
            Figure(name=f"widest_{kind}_bytes", value=mix.get(f"{kind}_bytes_max", 0), unit="bytes", source=STATIC)
            for kind in ("load", "store")
        ]
    return figures


def _time_notes(evaluation: Evaluation, baselines: Baselines) -> list[str]:
    if evaluation.time_us is None:
        return ["The evaluation holds no time: the model's estimate stands for it."]
    if evaluation.timing is None and baselines.samples:
        return ["The candidate's time is estimated and the baselines' are measured: they are not compared."]
    return []


def _counter_notes(counters: Counters) -> list[str]:
    """Say what was counted, and how, and what was not."""
    notes = [counters.note] if counters.note else []
    if counters.figures:
        kernels = f"{len(counters.kernels)} kernel{'s' if len(counters.kernels) != 1 else ''}"
        notes.append(
            f"Hardware counters are of one call, {kernels}, each with emptied caches, in a process of the candidate's own: "
            f"evidence for this profile and for no verdict. Its sandbox: {counters.sandbox or 'none'}."
        )
    return notes


def _kernel_note(heaviest: LaunchCost | None) -> str:
    if heaviest is None:
        return "No launch was recorded: bytes moved and kernel figures are not known."
    name, kernel = heaviest.work.launch.name, heaviest.work.kernel
    if heaviest.work.launch.kind == "library":
        return f"The heaviest launch by the model is the library's {name}, whose kernel is not read."
    if kernel is None:
        return f"The heaviest launch by the model is {name}, whose machine code was not read."
    if not kernel.instructions:
        return f"Kernel figures are those of {name}, the heaviest launch by the model; its instruction mix is not read for {kernel.arch}."
    return f"Kernel figures are those of {name}, the heaviest launch by the model."
