"""An evaluation as whoever writes the kernel can act on it: what is wrong and where, or where the time goes and how far the floor is."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tools.cost.estimate import LaunchCost, launch_costs
from tools.cost.roofline import Bound, roofline
from tools.records import Evaluation, HardwareSheet, OutputError, Problem, ShapeResult, Verdict, WrongOutput
from tools.reports.fault import fault_of, fault_text

KERNELS = 6
"""Launches that are shown, the longest first."""
NOTES = 6
STOPPED = (Verdict.BUILD_FAILED, Verdict.CRASHED)
"""How a candidate ends that stopped somewhere in its file."""
_BOUNDS: dict[Bound, str] = {
    "bandwidth": "every input read once and every output written once, at the datasheet's bandwidth",
    "matmul": "the operations of its products, at the fastest rate that the precision allows",
    "pointwise": "its operations outside of products, at the ordinary cores' rate",
}
_SAID = re.compile(r"relative L2 error|of the elements differ|calls are wrong")
"""Notes of an evaluation that a report says in more words."""


def report(problem: Problem, evaluation: Evaluation, sheet: HardwareSheet, source: str) -> str:
    """Write the report: the verdict first, then what it rests on, in plain lines of at most some 140 characters."""
    rule = f" (rule {evaluation.rule})" if evaluation.rule else ""
    lines = [f"Verdict: {evaluation.verdict}{rule}"]
    if evaluation.verdict in STOPPED and evaluation.log:
        lines += fault_text(fault_of(evaluation.log, source)).splitlines()
    if evaluation.correctness:
        lines += [_error(one) for one in evaluation.correctness.outputs]
        lines += [line for wrong in evaluation.correctness.wrong for line in wrong_lines(wrong)]
        lines += [note for note in evaluation.notes if note.partition(" calls are wrong")[1]]
        lines.append(f"Checked at: {'; '.join(evaluation.correctness.sizes)} ({_by(evaluation)}).")
    lines += _time_lines(problem, evaluation, sheet)
    lines += [_shape_line(one) for one in evaluation.shapes]
    lines += kernel_lines(*evaluation.dominant(problem), sheet)
    notes = [note for note in evaluation.notes if not _SAID.search(note) and not any(note in line for line in lines)]
    lines += [f"Note: {note}" for note in notes[:NOTES]]
    lines += [f"({len(notes) - NOTES} more notes)"] if len(notes) > NOTES else []
    return "\n".join(lines)


def telling_lines(evaluation: Evaluation, source: str) -> list[str]:
    """What mends a kernel that failed, in a few lines: its first wrong elements, or the line of its file at which it stopped."""
    wrong = evaluation.correctness.wrong if evaluation.correctness else ()
    lines = [line for one in wrong for line in wrong_lines(one)]
    fault = fault_of(evaluation.log, source) if evaluation.verdict in STOPPED else None
    return [*lines, *([f"stopped at line {fault.line}: {fault.text}"] if fault and fault.line else [])]


def wrong_lines(wrong: WrongOutput) -> Iterator[str]:
    """Say where an output is off, with its first wrong elements."""
    place = f" at {wrong.size}" if wrong.size else ""
    inputs = f", inputs “{wrong.inputs}”" if wrong.inputs else ""
    yield f"{wrong.output} {list(wrong.shape)}{place}{inputs}: {wrong.wrong:,} of {wrong.elements:,} elements are off{_where(wrong)}."
    if wrong.factor is not None:
        yield f"  What came is {wrong.factor:.4g} times what is right, wherever it is off."
    for one in wrong.first:
        yield f"  {list(one.index)}: expected {one.expected:.8g}, got {one.got:.8g}"


def kernel_lines(problem: Problem, evaluation: Evaluation, sheet: HardwareSheet) -> Iterator[str]:
    """List the launches with what the compiler made of them and what the cost model expects of each, the longest first."""
    costs = launch_costs(problem, evaluation.launches, evaluation.kernels, sheet)
    if not costs:
        return
    whole = sum(cost.whole_us for cost in costs)
    yield f"Launches, the longest first; times are the cost model's for {sheet.title} (estimated), registers and the like the compiler's:"
    for cost in sorted(costs, key=lambda cost: -cost.whole_us)[:KERNELS]:
        yield f"  {_kernel(cost)}: {_times(cost)}{cost.device_us:.1f} µs, {cost.whole_us / whole:.0%} of the launches, {_limit(cost)}"
    if len(costs) > KERNELS:
        yield f"  and {len(costs) - KERNELS} more launches"


def _times(cost: LaunchCost) -> str:
    return f"{cost.times} times " if cost.times > 1 else ""


def _error(error: OutputError) -> str:
    margin = f"{error.severity:.2g} of what is allowed" if error.severity <= 1 else f"{error.severity:,.3g} times what is allowed"
    return (
        f"{error.output}: relative L2 error {error.relative_l2:.3g} (limit {error.limit_relative_l2:.3g}, the reference's own "
        f"{error.reference_relative_l2:.3g}), worst row {error.worst_row:.3g} (limit {error.limit_worst_row:.3g}): {margin}."
    )


def _where(wrong: WrongOutput) -> str:
    """The part of an output in which all that is wrong lies; empty where that is the whole."""
    parts = []
    for dimension, ((first, last), size) in enumerate(zip(wrong.box, wrong.shape, strict=True)):
        if (first, last) != (0, size - 1):
            span = f"{first}" if first == last else f"{first} to {last}"
            parts.append(f"index {span} of {size} along dimension {dimension}")
    if not parts:
        return "" if wrong.wrong == wrong.elements else ", all over it"
    return f", all within {' and '.join(parts)}"


def _by(evaluation: Evaluation) -> str:
    assert evaluation.correctness is not None
    by = "on the GPU" if evaluation.correctness.executor == "gpu" else "by Triton's interpreter"
    return f"{evaluation.correctness.calls} calls {by}"


def _time_lines(problem: Problem, evaluation: Evaluation, sheet: HardwareSheet) -> Iterator[str]:
    """The time, the baselines beside it, and the floor."""
    if evaluation.time_us is None:
        return
    floor = roofline(problem, sheet)
    baselines = {"eager": evaluation.estimate.eager_us} if evaluation.estimate else {}
    if evaluation.timing:
        baselines = {name: sample.median_us for name, sample in evaluation.timing.baselines.items()}
    beside = ", ".join(f"{name} {us:,.1f} µs" for name, us in baselines.items())
    yield f"Time: {evaluation.time_us:,.1f} µs ({evaluation.tier}), {evaluation.speedup or 0:.2f}x the best baseline; {beside}."
    far = evaluation.time_us / floor.us if floor.us else 0.0
    yield f"Roofline floor on {sheet.title}: {floor.us:,.1f} µs ({_BOUNDS[floor.bound]}); this takes {far:.2f} times that."


def _shape_line(one: ShapeResult) -> str:
    found = one.evaluation
    time = f"{found.time_us:,.1f} µs, {found.speedup or 0:.2f}x the best baseline there" if found.time_us else "no time"
    return f"At the shape {one.name} (weight {one.weight:g}): {time}."


def _kernel(cost: LaunchCost) -> str:
    launch, kernel = cost.work.launch, cost.work.kernel
    shape = f" grid {'x'.join(map(str, launch.grid))}, {launch.num_warps} warp{'s' * (launch.num_warps != 1)}" if launch.grid else ""
    held = f", {cost.occupancy.fraction:.0%} occupancy by {cost.occupancy.limiter}" if cost.occupancy else ""
    if kernel is None:
        return f"{launch.name}{shape}"
    return f"{launch.name}{shape}, {kernel.registers} registers, {kernel.spill_bytes} B spilled, {kernel.shared_bytes:,} B shared{held}"


def _limit(cost: LaunchCost) -> str:
    terms = {"memory": cost.memory_us, "arithmetic": cost.compute_us, "issuing instructions": cost.issue_us, "spills": cost.spill_us}
    return f"limited by {max(terms, key=lambda name: terms[name])}"
