"""Times one operator's first choices in this process, for `benchmarks.wild.choices`.

Usage: python -m benchmarks.wild.choices_worker NAME FILE MOST SECONDS
"""

from __future__ import annotations

import copy
import functools
import math
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from benchmarks.lab.device_lock import DeviceLock
from benchmarks.lab.trusted import load_source, make_model, outputs_of, times_us
from benchmarks.wild.choice_row import FAR, ChoicesRow, TimedChoice
from benchmarks.wild.neighbours import still_neighbours
from tools.codegen import OperatorGraph, emit, trace
from tools.cost.choice import Choice
from tools.cost.rank_schedules import modelled_choices
from tools.evaluation.trusted.reference import Oracle
from tools.evaluation.wire.lead_in import ColdCache
from tools.hardware import detect_sheet
from tools.problems import Reference, load_problem, open_problem
from tools.problems.patience import EndlessError, limited
from tools.records import DEFAULT_POLICY, Problem

if TYPE_CHECKING:
    import torch

LOCK = Path(tempfile.gettempdir()) / "kernelwright-choices-lock"
"""Shared by all of these processes."""
SEED = 7
PIECE = 1 << 26
"""Elements that are compared at once."""
COMPILE_S = 120.0
"""torch.compile is given up after it: a loop of a hundred steps, written out, is minutes of work. A run's own limit is the same."""
TIMING_S = 30.0
"""Kept of an operator's time for what follows."""


def main() -> None:
    """Print the row as JSON."""
    name, file, most, seconds = sys.argv[1:]
    print(timed(name, Path(file), int(most), time.monotonic() + float(seconds)).model_dump_json())


def timed(name: str, file: Path, most: int, end: float) -> ChoicesRow:
    """Prepare everything, torch.compile last, then take the device and time it in turn; `end` is when all is to be done."""
    import torch

    sheet = detect_sheet()
    assert sheet is not None, "this machine has no NVIDIA GPU"
    problem = load_problem(file, DEFAULT_POLICY)
    graph = trace(problem)
    choices = modelled_choices(graph, sheet, problem.policy, most=most)
    reference = open_problem(problem)
    inputs = reference.inputs(SEED, "cuda")
    module = copy.deepcopy(reference.module).cuda() if isinstance(reference.module, torch.nn.Module) else reference.module
    expected = outputs_of(module, _fresh(inputs), problem)
    calls: dict[str, Callable[[], Any]] = {"eager": lambda: module(*inputs)}

    # few choices are far from eager, and all of them are held against the same
    @functools.cache
    def in_float64() -> list[torch.Tensor]:
        return Oracle(problem, reference.parameters(), "cuda").outputs(_fresh(inputs))

    found = [_made(problem, graph, reference, choice, inputs, Held(expected, in_float64)) for choice in choices]
    del expected
    in_float64.cache_clear()
    calls |= {str(place): call for place, (_, call) in enumerate(found) if call}
    compiled = torch.compile(module, dynamic=False)
    missing = not_ready(lambda: outputs_of(compiled, _fresh(inputs), problem), min(COMPILE_S, end - TIMING_S - time.monotonic()))
    if not missing:
        calls["compile"] = lambda: compiled(*inputs)
    with DeviceLock(LOCK).taken(), still_neighbours():
        cold = ColdCache(2 * torch.cuda.get_device_properties(0).L2_cache_size)
        us = {key: statistics.median(times_us(call, cold)) for key, call in calls.items()}
    rows = tuple(row.model_copy(update={"us": us.get(str(place))}) for place, (row, _) in enumerate(found))
    return ChoicesRow(operator=name, eager_us=us["eager"], compile_us=us.get("compile"), missing=missing, choices=rows)


def not_ready(first_call: Callable[[], object], seconds: float) -> str:
    """Make a first call, which compiles; say why there will be no other, or nothing where it came within its time."""
    if seconds <= 0.0:
        return "no time was left for it"
    try:
        with limited(seconds):
            first_call()
    except EndlessError:
        return f"not ready after {seconds:.0f} s"
    except Exception as error:
        return f"{type(error).__name__}: {error}".splitlines()[0][:300]
    return ""


class Held(NamedTuple):
    """What results are held against."""

    eager: Sequence[Any]
    in_float64: Callable[[], Sequence[Any]]
    """The same in float64; run where a result is far from eager."""

    def difference(self, outputs: Sequence[Any]) -> float:
        """Return the largest difference of all outputs, each from eager or, where that is nearer, from float64.

        What eager rounds to half precision before an `argmax` names other places than either.
        """
        if (found := relative_difference(outputs, self.eager)) <= FAR:
            return found
        each = zip(outputs, self.eager, self.in_float64(), strict=True)
        return max(min(_difference(one, eager), _difference(one, exact)) for one, eager, exact in each)


def _made(
    problem: Problem, graph: OperatorGraph, reference: Reference, choice: Choice, inputs: Sequence[Any], held: Held
) -> tuple[TimedChoice, Callable[[], Any] | None]:
    """Write, load and run one choice; what fails is a row that says so."""
    row = TimedChoice(made=choice.made, modelled_us=round(choice.us, 1))
    try:
        source = emit(problem, graph, choice.schedule).source
        model = make_model(load_source(source, Path(tempfile.mkdtemp())), problem, reference)
        if hasattr(model, "pack_weights"):
            model.pack_weights()
        difference = held.difference(outputs_of(model, _fresh(inputs), problem))
    except Exception as error:
        return row.model_copy(update={"why": f"{type(error).__name__}: {error}"[:300]}), None
    return row.model_copy(update={"difference": difference}), lambda: model(*inputs)


def _fresh(inputs: Sequence[Any]) -> list[Any]:
    """Copy the tensors: some operators write to theirs."""
    import torch

    return [value.clone() if isinstance(value, torch.Tensor) else value for value in inputs]


def relative_difference(outputs: Sequence[Any], expected: Sequence[Any]) -> float:
    """Return the largest relative L2 difference, where eager is finite."""
    return max((_difference(one, other) for one, other in zip(outputs, expected, strict=True)), default=0.0)


def _difference(output: torch.Tensor, expected: torch.Tensor) -> float:
    """Work through it piece by piece: a copy in float64 of an output of gigabytes would not fit."""
    import torch

    pairs = (torch.view_as_real(value) if value.is_complex() else value for value in (output, expected))
    mine, its = (value.reshape(-1).split(PIECE) for value in pairs)
    off = norm = 0.0
    for piece, right in zip(mine, its, strict=True):
        one, other = piece.double(), right.double()
        finite = torch.isfinite(other)
        norm += float((other[finite] ** 2).sum())
        off += float(((one - other)[finite] ** 2).sum())
    return math.sqrt(off) / (math.sqrt(norm) + 1e-30)


if __name__ == "__main__":
    main()
