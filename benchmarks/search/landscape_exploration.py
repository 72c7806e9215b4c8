"""The schedules of a landscape: found breadth-first by actions from the initial one, with every step between them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from benchmarks.search.landscape import Step
from tools.codegen import IllegalAction, LoweringError, OperatorGraph, Schedule, apply, emit, initial_schedule, options, trace
from tools.problems import load_problem
from tools.records import ROOT, Action, ActionKind, HardwareSheet, Problem, content_hash


@dataclass
class Found:
    """One schedule of a problem."""

    schedule: Schedule
    source: str
    verdict: str = ""
    """Empty while it was not checked; `PASS` or another verdict after."""
    facts: dict[str, float] = field(default_factory=dict)
    sample: tuple[float, float, float] | None = None


@dataclass
class Explored:
    """What enumeration found on one problem."""

    problem: Problem
    found: dict[str, Found]
    steps: list[Step]
    omitted: int


def explore(file: str, sheet: HardwareSheet, places: int, fan: int, seed: int) -> Explored:
    """Apply actions breadth-first from the initial schedule, every structural one and at most `fan` drawn others a schedule."""
    problem = load_problem(Path(file))
    graph = trace(problem)
    start = initial_schedule(graph)
    found: dict[str, Found] = {}
    homes: dict[str, str] = {}
    queue, rng = [(ROOT, start)], Random(seed)
    while queue and len(found) < places:
        _, schedule = queue.pop(0)
        for action in _chosen(options(graph, schedule, sheet), fan, rng):
            reached = _place(problem, graph, schedule, action, homes, found, places)
            if reached:
                queue.append(reached)
    steps, omitted = _steps(graph, start, found, homes, sheet)
    return Explored(problem, found, steps, omitted)


def _chosen(offered: Sequence[Action], fan: int, rng: Random) -> list[Action]:
    structural = [a for a in offered if a.kind is ActionKind.FUSION or a.parameters.get("implementation") == "generated"]
    knobs = [a for a in offered if a not in structural]
    return structural + rng.sample(knobs, min(fan, len(knobs)))


def _place(
    problem: Problem, graph: OperatorGraph, schedule: Schedule, action: Action, homes: dict[str, str], found: dict[str, Found], places: int
) -> tuple[str, Schedule] | None:
    """Add the schedule after `action` where it is new and fits; return it to go on from."""
    try:
        changed = apply(graph, schedule, action)
        key = changed.model_dump_json()
        if key in homes or len(found) >= places:
            return None
        source = emit(problem, graph, changed).source
    except (IllegalAction, LoweringError):
        return None
    name = content_hash(problem.id, source)
    homes[key] = name
    if name in found:
        return None
    found[name] = Found(changed, source)
    return name, changed


def _steps(
    graph: OperatorGraph, start: Schedule, found: dict[str, Found], homes: dict[str, str], sheet: HardwareSheet
) -> tuple[list[Step], int]:
    """Every step between recorded schedules, also those that the enumeration did not take, and how many lead elsewhere."""
    steps, omitted = [], 0
    for name, schedule in ((ROOT, start), *((name, one.schedule) for name, one in found.items())):
        for action in options(graph, schedule, sheet):
            try:
                end = homes.get(apply(graph, schedule, action).model_dump_json())
            except IllegalAction:
                continue
            if end is None:
                omitted += 1
            else:
                steps.append(Step(start=name, action=action, end=end))
    return steps, omitted
