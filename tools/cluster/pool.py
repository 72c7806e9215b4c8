"""The agents' side of a Ray cluster: an evaluator pool whose evaluations happen on its nodes."""

from __future__ import annotations

from collections.abc import Callable

from tools.cluster.crew import Crew
from tools.cluster.joining import Joined
from tools.cluster.member import Member, Needs, failed
from tools.cluster.records import Question, Reply
from tools.errors import MachineError
from tools.profiling.ncu import Counters
from tools.records import Baselines, Evaluation, EvaluationRequest, HardwareSheet, Problem

_FAILURES = 3
"""Evaluators that may die or fail over one question before it is answered with that; those whose whole node is lost do not count."""


class RayPool:
    """Asks evaluators on a cluster; what was in flight on a node that is lost is asked again of another one."""

    def __init__(self, joined: Joined, needs: Needs) -> None:
        """Use the cluster that was joined; nothing is placed there before the first question."""
        self._address = joined.address
        self._warnings = list(joined.warnings)
        self._listener: Callable[[str], None] = lambda line: None
        self._words = needs.title or "interpreter"
        self._crew = Crew(needs, self._say)

    @property
    def name(self) -> str:
        """The cluster and who works there now."""
        return f"Ray at {self._address} ({self._words}; {self._crew.words})"

    @property
    def listener(self) -> Callable[[str], None]:
        """Who gets a line for whatever a person should know of the cluster."""
        return self._listener

    @listener.setter
    def listener(self, listener: Callable[[str], None]) -> None:
        self._listener = listener
        for line in self._warnings:
            listener(line)
        self._warnings.clear()

    async def evaluate(self, request: EvaluationRequest) -> Evaluation:
        """Judge one candidate on the evaluator that has least to do."""
        reply, one, notes = await self._asked(Question(evaluation=request))
        assert reply.evaluation is not None
        found = reply.evaluation.demand_whole()
        told = {"candidate": request.candidate, "notes": (*found.notes, *notes), "place": _place(one)}
        return found.model_copy(update=told)

    async def baselines(self, problem: Problem, target: HardwareSheet) -> Baselines:
        """Time the reference, or estimate it."""
        reply, one, notes = await self._asked(Question(problem=problem, target=target))
        assert reply.baselines is not None
        return reply.baselines.model_copy(update={"notes": (*reply.baselines.notes, *notes), "place": _place(one)})

    async def counters(self, request: EvaluationRequest) -> Counters:
        """Read the hardware counters of a candidate."""
        reply, _, _ = await self._asked(Question(counters=request))
        assert reply.counters is not None
        return reply.counters

    async def close(self) -> None:
        """End the evaluators; the cluster stays."""
        await self._crew.close()

    async def _asked(self, question: Question) -> tuple[Reply, Member, list[str]]:
        """Ask one evaluator, and another where that one is lost or its machine fails.

        Ray would restart a lost actor itself, yet its questions would wait until there is a place for it, though others have nothing to do.
        """
        from ray.exceptions import RayError

        notes: list[str] = []
        failures = 0
        while True:
            async with self._crew.member() as one:
                try:
                    reply = await self._crew.ask(one, question)
                except RayError as error:
                    failures += self._crew.drop(one, type(error).__name__)
                    fault = MachineError(f"{_place(one)} was lost at it.", "Look at that node's memory and kernel log.")
                else:
                    if reply.failure is None:
                        return reply, one, [*notes, *([one.note] if one.note else [])]
                    error_ = failed(reply.failure, _place(one))
                    if not isinstance(error_, MachineError):
                        raise error_
                    self._crew.put_out(one, error_)
                    failures += 1
                    fault = error_
            notes.append(f"Evaluated again on another evaluator: {fault.what}")
            if failures >= _FAILURES:
                raise MachineError(f"{failures} evaluators were lost or failed over one question. {fault.what}", fault.mend)

    def _say(self, line: str) -> None:
        self._listener(line)


def _place(one: Member) -> str:
    return one.facts.place if one.facts else ""
