"""Carries out the calls of a writer's tools in a run: each is kept with its answer, so that a resumed or repeated run tells the same."""

from __future__ import annotations

import time
from collections.abc import Iterable

from pydantic import Field

from agents.models import BudgetReached
from graphs.run.context import Services
from graphs.run.counted import counters_of
from graphs.run.inspecting import inspect
from graphs.run.judge import judge
from graphs.run.records import Recall
from knowledge.records import Recalled
from tools.errors import KernelwrightError
from tools.idioms.choice import fitting
from tools.idioms.idiom import all_idioms
from tools.profiling.ncu import Counters
from tools.records import Candidate, Evaluation, Plan, Record, Verdict, content_hash
from tools.reports.evaluation import kernel_lines, report

USE = "tool_use"
"""Kind of record by which a store keeps the calls."""
LEAST_LEFT = 2
"""Evaluations that must be left for one to be timed: what is handed in is judged too, and may be another source."""
STALLS = {
    "long_scoreboard": "loads from global or local memory",
    "short_scoreboard": "shared memory and special functions",
    "barrier": "other warps at a barrier",
    "math_pipe_throttle": "the arithmetic unit to be free",
    "lg_throttle": "the queue of global memory instructions",
    "mio_throttle": "the queue of shared memory instructions",
    "wait": "a fixed latency between dependent instructions",
}
"""What Nsight Compute's stall reasons mean (Kernel Profiling Guide, warp stall reasons)."""


class ToolUse(Record):
    """One call of a tool by whoever writes a kernel."""

    tool: str
    purpose: str
    """Of the model's calls that it belongs to."""
    source: str = ""
    """Content hash of the source that was looked at, or of the name that was looked up; empty where nothing was given."""
    said: str
    seconds: float = Field(ge=0)

    @property
    def line(self) -> str:
        """Read as `check WRONG (2.1 s)`."""
        verdict = self.said.partition("Verdict: ")[2].partition("\n")[0]
        return f"{self.tool}{f' {verdict}' if verdict else ''} ({self.seconds:.1f} s)"


class RunBench:
    """Looks at sources with the run's evaluator, and at its memory."""

    def __init__(self, services: Services) -> None:
        """Work in `services`' run."""
        self._services = services

    async def use(self, tool: str, given: str, plan: Plan, purpose: str) -> str:
        """Carry out a call, unless the store has it already."""
        digest = content_hash(given) if given else ""
        name = content_hash(purpose, tool, digest)
        known = self._services.store.get(USE, name, ToolUse)
        if known is None:
            began = time.monotonic()
            said = await self._said(tool, given, plan)
            known = ToolUse(tool=tool, purpose=purpose, source=digest, said=said, seconds=time.monotonic() - began)
            self._services.store.put(USE, name, known, subject=plan.id)
        return known.said

    async def _said(self, tool: str, source: str, plan: Plan) -> str:
        """A machine that fails at it, or a budget that is over, is an answer: the writer can go on without."""
        try:
            if tool == "memory":
                return self._remembered(plan)
            if tool == "idioms":
                return self._idioms(source.strip())
            candidate = self._candidate(source, plan)
            if tool == "time":
                return await self._timed(candidate)
            if tool == "profile":
                return await self._profiled(candidate)
            found = await inspect(self._services, source, candidate.id, "build" if tool == "compile" else "check")
            return self._report(found, source)
        except (KernelwrightError, BudgetReached) as error:
            return f"Not now: {error.what}"

    def _candidate(self, source: str, plan: Plan) -> Candidate:
        """The candidate that the source would be; it is none of the run's before it is handed in."""
        problem = self._services.problem.id
        return Candidate(problem=problem, parent=plan.parent, action=plan.action, source=source, coder=self._services.team.coder.name)

    async def _timed(self, candidate: Candidate) -> str:
        request, left = self._services.request(candidate), self._services.evaluations_left()
        known = self._services.store.get("evaluation", request.key, Evaluation)
        if known is None and left is not None and left < LEAST_LEFT:
            return "No evaluation is left to time it with: hand in what you hold to be the fastest."
        found = await judge(self._services, request)
        estimated = found.verdict is Verdict.PASS and found.timing is None
        return self._report(found, candidate.source) + ("\nThere is no GPU here: the time is an estimate." if estimated else "")

    async def _profiled(self, candidate: Candidate) -> str:
        request = self._services.request(candidate)
        known = self._services.store.get("evaluation", request.key, Evaluation)
        if known is None or known.verdict is not Verdict.PASS:
            return "Time it first: only a source that was timed and is right is profiled."
        if known.timing is None:
            lines = kernel_lines(*known.dominant(self._services.problem), self._services.sheet)
            return "\n".join(("Not here: nothing was timed, so there are no hardware counters. By the cost model:", *lines))
        counters = await counters_of(self._services, request)
        return "\n".join(_counted(counters)) if counters.figures else f"Not here: {counters.note}"

    def _remembered(self, plan: Plan) -> str:
        found = list(self._services.store.all("recall", Recall, subject=plan.parent).values())
        recalled = found[-1].recalled if found else ()
        lines = [_told(one) for one in recalled]
        return "\n".join(lines) or "Memory knows nothing of such an operator here."

    def _idioms(self, name: str) -> str:
        """The idiom of that name, or all of them in a line each, those that fit the problem first."""
        known = {one.name: one for one in (*fitting(self._services.problem), *all_idioms())}
        if name in known:
            return known[name].text
        lines = [f"{one.name}: {one.title}. {one.when}." for one in known.values()]
        return "\n".join([f"There is no idiom {name!r}.", *lines] if name else lines)

    def _report(self, found: Evaluation, source: str) -> str:
        return report(self._services.problem, found, self._services.sheet, source)


def _told(one: Recalled) -> str:
    """Advice with the kernel that it came from, or a warning."""
    excerpt = f"\nThe kernel it came from:\n{one.strategy.excerpt}" if one.strategy.excerpt and not one.warning else ""
    return f"{'Warning' if one.warning else 'Advice'} ({one.strategy.kind}; {one.why}): {one.strategy.lesson}{excerpt}"


def _counted(counters: Counters) -> Iterable[str]:
    """Counters in words: the figures, then what warps waited for, the longest first."""
    figures = {figure.name: figure for figure in counters.figures}
    yield f"One call under Nsight Compute, {len(counters.kernels)} kernels: {', '.join(dict.fromkeys(counters.kernels))}"
    for name, figure in figures.items():
        if not name.startswith("stall_"):
            yield f"  {name}: {figure.value:,.4g} {figure.unit}"
    waits = [figure for name, figure in figures.items() if name.startswith("stall_")]
    for figure in sorted(waits, key=lambda one: -one.value):
        reason = figure.name.removeprefix("stall_")
        yield f"  warps wait for {STALLS.get(reason, reason)}: {figure.value:.2f} warps an instruction issued"
