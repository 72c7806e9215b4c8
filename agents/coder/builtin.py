"""The built-in coder: traces the reference, changes its schedule by one action, and emits readable Triton."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

from agents.coder.modelled import choice_actions, choice_note, choice_of, smaller_schedule
from agents.coder.protocol import CodingTask, Draft, Refusal
from agents.coder.traced import begin_trace, traced_graph
from tools.codegen import IllegalAction, LoweringError, OperatorGraph, Schedule, apply, emit, initial_schedule, limits, options
from tools.cost.choice import chosen_number
from tools.errors import UserError
from tools.records import Action, Candidate, Evaluation, HardwareSheet, Problem, Verdict

FREE_TEXT = "The parent is free text without a schedule; the built-in coder changes schedules only, never text."
TOO_LARGE = (Verdict.BUILD_FAILED, Verdict.CRASHED, Verdict.TIMED_OUT)
"""Ends that a smaller parameter can mend: it needs fewer registers, less shared memory, less compile time."""


class BuiltinCoder:
    """Changes schedules and emits sources. It never guesses: what it cannot do it refuses."""

    name = "builtin"
    free = False

    async def begin(self, problem: Problem, sheet: HardwareSheet, trace_s: float) -> None:
        """Have the reference traced."""
        await asyncio.shield(asyncio.wrap_future(begin_trace(problem, sheet, trace_s)))

    async def options(self, problem: Problem, parent: Candidate | None, sheet: HardwareSheet) -> tuple[Action, ...]:
        """List the legal actions on this parent; none on free text."""
        if parent is not None and parent.schedule is None:
            return ()
        return await asyncio.to_thread(self._options, problem, parent, sheet)

    async def limits(self, problem: Problem) -> tuple[str, ...]:
        """Name each operator that no template can generate, and why."""
        return await asyncio.to_thread(self._limits, problem)

    async def write(self, task: CodingTask) -> Draft | Refusal:
        """Apply the action to the parent's schedule and emit the source."""
        if task.parent is not None and task.parent.schedule is None:
            return Refusal(reason=FREE_TEXT)
        return await asyncio.to_thread(self._write, task, task.plan.action, ())

    async def repair(self, task: CodingTask, draft: Draft, evaluation: Evaluation, attempt: int) -> Draft | Refusal:
        """Take a smaller parameter where the draft was too large and that is a legal option; anything else it does not mend by guessing."""
        reason = f"The built-in coder does not mend {evaluation.verdict} by guessing: what it emits follows from its schedule."
        if draft.schedule is None or evaluation.verdict not in TOO_LARGE:
            return Refusal(reason=reason)
        if chosen_number(task.plan.action):
            return await asyncio.to_thread(self._shrink, task, draft.schedule, evaluation.verdict)
        legal = await self.options(task.problem, task.parent, task.sheet)
        smaller = list(_smaller(task.plan.action, legal))
        if attempt > len(smaller):
            return Refusal(reason=f"{reason} No smaller parameters of {task.plan.action} are left among its options.")
        other = smaller[attempt - 1]
        note = f"{task.plan.action} ended {evaluation.verdict}; this is the smaller {other} instead."
        return await asyncio.to_thread(self._write, task, other, (note,))

    async def start(self, problem: Problem) -> Draft | Refusal:
        """Emit the untouched initial schedule: a working source that others may build on."""
        return await asyncio.to_thread(self._start, problem)

    def _start(self, problem: Problem) -> Draft | Refusal:
        graph = self._graph(problem)
        return _draft(problem, graph, initial_schedule(graph), ())

    def _limits(self, problem: Problem) -> tuple[str, ...]:
        found = limits(self._graph(problem))
        return tuple(dict.fromkeys(one.reason if one.operator in one.reason else f"{one.operator}: {one.reason}" for one in found))

    def _options(self, problem: Problem, parent: Candidate | None, sheet: HardwareSheet) -> tuple[Action, ...]:
        graph = self._graph(problem)
        return (*choice_actions(problem, parent, sheet), *options(graph, _schedule(graph, parent), sheet, problem.policy))

    def _write(self, task: CodingTask, action: Action, notes: tuple[str, ...]) -> Draft | Refusal:
        graph = self._graph(task.problem)
        if chosen_number(action):
            choice = choice_of(action, task.problem, task.sheet)
            if choice is None:
                return Refusal(reason=f"The cost model has no choice {chosen_number(action)} for this reference.")
            return _draft(task.problem, graph, choice.schedule, (choice_note(choice), *notes))
        try:
            changed = apply(graph, _schedule(graph, task.parent), action)
        except IllegalAction as error:
            return Refusal(reason=f"{action} is not legal on this parent: {error}")
        return _draft(task.problem, graph, changed, notes)

    def _shrink(self, task: CodingTask, schedule: str, verdict: Verdict) -> Draft | Refusal:
        """Write a choice of the cost model that was too large with smaller numbers; one that crashed as a CUDA graph without it first."""
        own = Schedule.model_validate_json(schedule)
        if own.captured and verdict is Verdict.CRASHED and any(region.is_generated for region in own.regions):
            note = f"{task.plan.action} ended {verdict}; this is the same without a CUDA graph."
            return _draft(task.problem, self._graph(task.problem), own.model_copy(update={"captured": False}), (note,))
        smaller = smaller_schedule(own)
        if smaller is None:
            return Refusal(reason=f"{task.plan.action} ended {verdict}, and its numbers are the smallest already.")
        note = f"{task.plan.action} ended {verdict}; this is the same with fewer stages or smaller steps."
        return _draft(task.problem, self._graph(task.problem), smaller, (note,))

    def _graph(self, problem: Problem) -> OperatorGraph:
        """Trace a problem once."""
        return traced_graph(problem)


def _schedule(graph: OperatorGraph, parent: Candidate | None) -> Schedule:
    if parent is None:
        return initial_schedule(graph)
    if parent.schedule is None:
        raise UserError(FREE_TEXT, "Use the mixed or the llm coder.")
    return Schedule.model_validate_json(parent.schedule)


def _draft(problem: Problem, graph: OperatorGraph, schedule: Schedule, notes: tuple[str, ...]) -> Draft | Refusal:
    try:
        emission = emit(problem, graph, schedule)
    except LoweringError as error:
        return Refusal(reason=f"The schedule cannot be written as a source: {error}")
    return Draft(source=emission.source, schedule=schedule.model_dump_json(), notes=(*emission.notes, *notes))


def _smaller(action: Action, legal: tuple[Action, ...]) -> Iterator[Action]:
    """Options of the same kind, region and names, with no number larger and at least one smaller; the nearest first."""
    found = [o for o in legal if (o.kind, o.region, o.parameters.keys()) == (action.kind, action.region, action.parameters.keys())]
    steps = [(step, o) for o in found if (step := _step(action, o)) is not None]
    yield from (o for _, o in sorted(steps, key=lambda pair: pair[0]))


def _step(action: Action, other: Action) -> float | None:
    """How much smaller `other` is, as the product of ratios; None where it is not."""
    ratio = 1.0
    for name, value in action.parameters.items():
        new = other.parameters[name]
        if isinstance(value, bool | str) or isinstance(new, bool | str):
            if new != value:
                return None
        elif new > value or new <= 0:
            return None
        else:
            ratio *= value / new
    return ratio if ratio > 1.0 else None
