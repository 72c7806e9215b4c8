"""How often one candidate, or its plan, is timed: once, as a rule; which session counts, and what is said where none does."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from typing import Protocol

from tools.evaluation.supervisor.checking.correctness import Outcome
from tools.evaluation.supervisor.timed.baseline_client import BaselineProcess
from tools.evaluation.supervisor.timed.plausibility import Times
from tools.evaluation.supervisor.timed.steadiness import Steadiness
from tools.evaluation.supervisor.timed.timing import TimedSession
from tools.evaluation.wire.jobs.builder import BuildAnswer
from tools.records import EvaluationRequest, Seeds, Timing, Verdict

PAUSES_S = {"first": 1.0, "second": 2.0, "third": 4.0, "fourth": 8.0}
"""The sessions that there may be, and how long the device is left alone after one that slowed a baseline down: a host has time to end
what it does, and the device to cool."""
_LOOKS = 4
"""Times that the baselines are timed by themselves in the second half of a pause."""
_KEPT = 2
"""Sessions whose inputs may be there at the same time; of a large problem one."""


class Case(Protocol):
    """What an evaluation knows so far, as far as it is needed here."""

    request: EvaluationRequest
    build: BuildAnswer
    notes: list[str]
    seeds: list[Seeds]

    def part(self, name: str) -> AbstractContextManager[None]:
        """Take down how long a part of the timing took."""


class Tries:
    """The sessions of a candidate, or of its plan."""

    def __init__(self, first: TimedSession, steadiness: Steadiness, wait: Callable[[float], None]) -> None:
        """Begin with none; `wait` passes so many seconds."""
        self.first = first
        self._steadiness, self._wait = steadiness, wait
        self._unjudged: list[tuple[TimedSession, ExitStack]] = []
        self.found: Outcome | Timing = Outcome(Verdict.INFRASTRUCTURE, notes=["It was not timed."])
        """Of the last session, as far as the oracle has no objection."""

    def measure(self, case: Case, baseline: BaselineProcess, held: ExitStack, cache: str = "") -> None:
        """Time it, and where it slowed a baseline down once more; `held` keeps what the oracle needs.

        A busy host slows a baseline of many small launches down, too, now and then; who does it on purpose does it again. Only where the
        baselines are unsteady by themselves there may be more than two sessions (`Steadiness` says why nobody gains by that).
        """
        session, fault, before = self.first, "", list[Times]()
        for ordinal, pause_s in PAUSES_S.items():
            if fault:
                case.notes.append(f"Timed again, since {fault}")
                session = session.another()
            if len(self._unjudged) == (1 if session.is_large else _KEPT) and self._let_go(case, baseline):
                return
            self._time(session, case, baseline, held, cache)
            reason = self._doubt(ordinal)
            if not reason:
                case.notes += self._said(ordinal)
                return
            fault = f"a {ordinal} session did not count: {reason}"
            if isinstance(self.found, Timing) or self.found.slowed:
                after = self._looks(session, case, baseline, pause_s)
                wavering = self._steadiness.wavering([session.alone_before, *before, *after])
                if ordinal != "first" and isinstance(self.found, Outcome) and not wavering.issuperset(self.found.slowed):
                    return
                before = after
        self.found = Outcome(Verdict.INFRASTRUCTURE, notes=[self._unsteady()])

    def judged(self, case: Case) -> Outcome | Timing:
        """Have the oracle judge the chosen calls of every session, and say what was found."""
        return self._first_wrong(case) or self.found

    def _first_wrong(self, case: Case) -> Outcome | None:
        for session, _ in self._unjudged:
            wrong = session.wrong()
            case.notes += session.notes
            if wrong:
                return wrong
        return None

    def _time(self, session: TimedSession, case: Case, baseline: BaselineProcess, held: ExitStack, cache: str) -> None:
        own = held.enter_context(ExitStack())
        self._unjudged.append((session, own))
        case.seeds.append(session.seeds)
        with case.part("inputs"):
            session.prepare(own)
        self.found = session.run(case.request.source, baseline, case.request.timeout_s, cache)
        for times in (session.alone_before, session.alone_after):
            self._steadiness.add(times)

    def _doubt(self, ordinal: str) -> str:
        """Say why what was found may not count, as a sentence; empty where it does in any case."""
        if isinstance(self.found, Timing):
            beside = {name: times.median_us for name, times in self.found.baselines.items()}
            return self._steadiness.inflated(beside) if ordinal != "first" and self._steadiness.unsteady else ""
        return self.found.notes[0] if self.found.slowed or (self.found.by_chance and ordinal == "first") else ""

    def _looks(self, session: TimedSession, case: Case, baseline: BaselineProcess, pause_s: float) -> list[Times]:
        """Wait, and see meanwhile what the baselines take by themselves."""
        looks = list[Times]()
        with case.part("pause"):
            self._wait(pause_s / 2)
            for _ in range(_LOOKS):
                self._wait(pause_s / 2 / _LOOKS)
                looks.append(session.look(baseline))
                self._steadiness.add(looks[-1])
        return looks

    def _let_go(self, case: Case, baseline: BaselineProcess) -> bool:
        """Have all sessions so far judged, and give back their inputs' memory; True where one of them was wrong."""
        with case.part("oracle"):
            baseline.release()
            wrong = self._first_wrong(case)
        for _, held in self._unjudged:
            held.close()
        self._unjudged = []
        self.found = wrong or self.found
        return wrong is not None

    def _said(self, ordinal: str) -> list[str]:
        """Say which session counts on an unsteady machine."""
        if ordinal == "first" or not self._steadiness.unsteady or isinstance(self.found, Outcome):
            return []
        seen = self._steadiness.unsteady
        return [f"The machine was unsteady: {seen}. The {ordinal} session counts: its baselines' times are ordinary."]

    def _unsteady(self) -> str:
        return (
            f"The machine is unsteady: {self._steadiness.unsteady}, so none of {len(PAUSES_S)} sessions can tell whether the candidate "
            "slows it down. Have other work leave the host's cores and the GPU, and judge it again."
        )
