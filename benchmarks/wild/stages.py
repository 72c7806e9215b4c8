"""Takes one operator through the stages of the built-in coder: read, trace and choose, write, judge in the interpreter."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Protocol

from benchmarks.wild.row import Ended, Left, WildRow
from tools.codegen import LoweringError, OperatorGraph, Schedule, emit, limits, trace
from tools.codegen.ir.views import is_view
from tools.codegen.schedule.bodies import body_of
from tools.cost.choice import Choice
from tools.cost.rank_schedules import modelled_choices
from tools.errors import MachineError, UserError
from tools.evaluation import EvaluationRequest, EvaluatorPool
from tools.problems import load_problem
from tools.problems.suite import SuiteItem
from tools.problems.variants import small_variants, with_sizes
from tools.records import DEFAULT_POLICY, HardwareSheet, Problem, Verdict
from tools.references.reading import Read, read_apart
from tools.references.tracing import Traced, trace_apart

SAID = 400
"""Characters kept of what a stage said."""


class Front(Protocol):
    """Who reads and traces."""

    def read(self, item: SuiteItem) -> Read:
        """Read an operator's file; whatever is wrong with it raises UserError."""

    def trace(self, problem: Problem, sheet: HardwareSheet) -> Traced:
        """Trace a problem and choose schedules; what cannot be traced is a graph that is blocked."""


class Apart:
    """Reads and traces in a process each, as a run does; `limit_s` seconds for each."""

    def __init__(self, limit_s: float) -> None:
        self.limit_s = limit_s

    def read(self, item: SuiteItem) -> Read:
        """Read in a process of its own."""
        answer = read_apart(item.file, DEFAULT_POLICY, limit_s=self.limit_s)
        if answer.problem is None:
            raise UserError(answer.what, answer.mend)
        return Read(answer.problem, answer.variants, answer.notes)

    def trace(self, problem: Problem, sheet: HardwareSheet) -> Traced:
        """Trace in a process of its own."""
        return trace_apart(problem, sheet, self.limit_s)


class Here:
    """Reads and traces in this process, without a limit, for who looks at it with a debugger."""

    def read(self, item: SuiteItem) -> Read:
        """Read here."""
        problem = load_problem(item.file)
        return Read(problem, small_variants(problem), ())

    def trace(self, problem: Problem, sheet: HardwareSheet) -> Traced:
        """Trace here."""
        graph = trace(problem)
        return Traced(graph, modelled_choices(graph, sheet, problem.policy))


class Walk:
    """One operator on its way; what it has found so far is in `facts`."""

    def __init__(self, item: SuiteItem, sheet: HardwareSheet, front: Front, sizes: Mapping[str, int] | None = None) -> None:
        """Take `item` at its own sizes, or with changed `sizes`."""
        self.item, self.sheet, self.front = item, sheet, front
        self.sizes = dict(sizes or {})
        self.facts: dict[str, Any] = {}

    async def row(self, pool: EvaluatorPool | None) -> WildRow:
        """Go through all stages; without a `pool` nothing is judged."""
        try:
            with self._timed("read_s"):
                read = self._resized(self.front.read(self.item))
        except UserError as error:
            return self._ended(Ended.UNREADABLE, str(error))
        with self._timed("trace_s"):
            graph, choices = self.front.trace(read.problem, self.sheet)
        if graph.blocked:
            return self._ended(Ended.NOT_TRACED, "; ".join(graph.blocked))
        self.facts |= {"left": tuple(_left(graph)), "choices": len(choices or ())}
        if not choices:
            return self._ended(Ended.NOTHING, "; ".join(dict.fromkeys(one.reason for one in self.facts["left"])))
        return await self._written(read, graph, choices[0], pool)

    def _resized(self, read: Read) -> Read:
        if not self.sizes:
            return read
        problem = with_sizes(read.problem, self.sizes)
        return Read(problem, small_variants(problem), read.notes)

    async def _written(self, read: Read, graph: OperatorGraph, choice: Choice, pool: EvaluatorPool | None) -> WildRow:
        self.facts |= _regions(graph, choice.schedule)
        try:
            with self._timed("emit_s"):
                source = emit(read.problem, graph, choice.schedule).source
        except LoweringError as error:
            return self._ended(Ended.NOT_WRITTEN, str(error))
        if not self.facts["generated"]:
            return self._ended(Ended.LIBRARY)
        return await self._judged(read, source, pool) if pool else self._ended(Ended.UNKNOWN)

    async def _judged(self, read: Read, source: str, pool: EvaluatorPool) -> WildRow:
        request = EvaluationRequest(
            problem=read.problem,
            variants=read.variants,
            candidate=hashlib.sha256(source.encode()).hexdigest()[:16],
            source=source,
            target=self.sheet,
            depth="check",
        )
        try:
            with self._timed("judge_s"):
                found = await pool.evaluate(request)
        except MachineError as error:
            return self._ended(Ended.UNKNOWN, str(error))
        self.facts["verdict"] = str(found.verdict)
        if found.verdict in {Verdict.PASS, Verdict.BUILT}:
            return self._ended(Ended.RIGHT)
        ended = Ended.UNKNOWN if found.verdict is Verdict.INFRASTRUCTURE else Ended.NOT_RIGHT
        return self._ended(ended, f"{found.verdict}: {'; '.join(found.notes)}")

    def _ended(self, ended: Ended, why: str = "") -> WildRow:
        return WildRow(operator=self.item.name, part=self.item.part, sizes=self.sizes, ended=ended, why=why[:SAID], **self.facts)

    @contextmanager
    def _timed(self, name: str) -> Iterator[None]:
        began = time.monotonic()
        try:
            yield
        finally:
            self.facts[name] = round(time.monotonic() - began, 2)


def _left(graph: OperatorGraph) -> Iterator[Left]:
    yield from dict.fromkeys(Left(operator=limit.operator, reason=limit.reason) for limit in limits(graph))


def _regions(graph: OperatorGraph, schedule: Schedule) -> dict[str, tuple[str, ...]]:
    """Say which regions of a schedule are ours and which the library's."""
    found: dict[str, list[str]] = {"generated": [], "library": []}
    for region in schedule.regions:
        body = body_of(graph, region) if region.body else None
        if body:
            for name, inside in _regions(body, Schedule(regions=region.body)).items():
                found[name] += (f"at every step {one}" for one in inside)
            continue
        nodes = [graph.by_name[name] for name in region.nodes if name in graph.by_name]
        operators = "+".join(node.op for node in nodes if not is_view(node))
        if region.is_generated:
            found["generated"].append(f"{region.template}: {operators}")
        elif operators:
            found["library"].append(operators)
    return {name: tuple(regions) for name, regions in found.items()}
