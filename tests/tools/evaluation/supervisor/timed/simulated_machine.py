"""A machine of simulated clocks: a host and a device that slow the baselines down as they are told, and sessions that are timed on it."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

from tools.evaluation.supervisor.checking.call_plan import Stage
from tools.evaluation.supervisor.checking.correctness import Outcome
from tools.evaluation.supervisor.timed.chains import Chains
from tools.evaluation.supervisor.timed.measured import Measured
from tools.evaluation.supervisor.timed.statistics import JustTaken
from tools.evaluation.supervisor.timed.steadiness import Steadiness
from tools.evaluation.supervisor.timed.timing import TimedSession
from tools.evaluation.supervisor.timed.tries import Tries
from tools.evaluation.wire.chain_board import BOARD_BYTES
from tools.evaluation.wire.memory import Memory
from tools.hardware import load_sheet
from tools.records import Problem, Seeds, Timing

ALONE_US = {"eager": 2000.0, "compile": 400.0}
"""What the baselines take with nobody in their way."""
CANDIDATE_US = 100.0
_CALL_S = 0.01


@dataclass
class Machine:
    """What stands in a baseline's way, as a factor of its time: what the host does then, and what the candidate does and leaves behind."""

    host: Callable[[float, bool], float] = lambda now_s, alive: 1.0
    """By the time, and by whether a candidate's process lives."""
    beside: float = 1.0
    """While the candidate's process lives."""
    left: float = 1.0
    """Just after it has ended: half of what is beyond 1 goes away in each `half_life_s`."""
    half_life_s: float = math.inf
    noise: float = 0.0
    """Standard deviation of what chance adds to each session, and to each look at the baselines."""
    seed: int = 0
    now_s: float = 0.0
    sessions: int = 0
    alive: bool = False
    names: tuple[str, ...] = tuple(ALONE_US)
    late: float = 1.0
    """How many times longer the candidate's calls one by one take than those in chains."""
    judged: tuple[float, ...] = ()
    """By session: how many times longer the calls that are judged take than others; as long where there is no more."""

    def __post_init__(self) -> None:
        """Begin with nothing left behind."""
        self.board = Memory(BOARD_BYTES)
        self.alone = JustTaken(lambda: self.now_s)
        self._ended_s = -math.inf
        self._chance = random.Random(self.seed)

    def call(self, name: str) -> float:
        """Time one call of a baseline, as its process does."""
        self.now_s += _CALL_S
        gone = (self.now_s - self._ended_s) / self.half_life_s if self.sessions else math.inf
        theirs = self.beside if self.alive else 1 + (self.left - 1) * 0.5**gone
        return ALONE_US[name] * self.host(self.now_s, self.alive) * theirs * (1 + self._chance.gauss(0, self.noise))

    def release(self) -> None:
        """Give memory back, which it has none of."""

    def wait(self, seconds: float) -> None:
        """Pass time."""
        self.now_s += seconds

    def run(self, count: int) -> Measured:
        """Have a candidate live for so many calls."""
        self.sessions += 1
        self.alive = True
        times = {name: [self.call(name) for _ in range(count)] for name in self.names}
        self.alive, self._ended_s = False, self.now_s
        single_us = CANDIDATE_US * self.late
        judged_us = single_us * dict(enumerate(self.judged, 1)).get(self.sessions, 1.0)
        chains = Chains(call_us=[CANDIDATE_US] * 3) if self.late > 1 else Chains()
        return Measured(event_us=[single_us] * count, judged_us=[judged_us], baselines=times, chains=chains)


class SimulatedSession(TimedSession):
    """The real session, but for the candidate's process and the oracle."""

    held = 0
    most_held = 0
    wrong_at = 0
    """The number of the session in which the oracle finds a wrong answer."""
    endings: dict[int, Outcome]
    """What sessions end with, by number, whatever was timed."""

    def prepare(self, held: ExitStack) -> None:
        """Count whose inputs are there at the same time."""
        kind = type(self)
        kind.held += 1
        kind.most_held = max(kind.most_held, kind.held)
        held.callback(lambda: setattr(kind, "held", kind.held - 1))

    def run(self, source: str, baseline: Any, timeout_s: float, cache: str = "") -> Outcome | Timing:
        """End as it was told, or as the real one does."""
        found = super().run(source, baseline, timeout_s, cache)
        self.number = baseline.sessions
        return self.endings.get(self.number, found)

    def _beside(self, source: str, baseline: Any, count: int, deadline: float, cache: str) -> Measured:
        measured: Measured = baseline.run(count)
        return measured

    def wrong(self) -> Outcome | None:
        """Judge."""
        from tools.records import Verdict

        return Outcome(Verdict.WRONG, notes=["1 of 4 timed calls gave a wrong answer."]) if self.number == self.wrong_at else None


@dataclass
class Known:
    """What an evaluation knows."""

    request: Any = field(default_factory=lambda: SimpleNamespace(source="", timeout_s=1.0))
    build: Any = None
    notes: list[str] = field(default_factory=list)
    seeds: list[Seeds] = field(default_factory=list)

    def part(self, _: str) -> AbstractContextManager[None]:
        """Take nothing down."""
        return nullcontext()


def time_it(
    problem: Problem,
    machine: Machine,
    *,
    wrong_at: int = 0,
    endings: dict[int, Outcome] | None = None,
    stage: Stage = "search",
    sealable: bool = True,
) -> tuple[Outcome | Timing, Known, type[SimulatedSession]]:
    """Time a candidate on a machine: what is found, what the evaluation knows then, and what its sessions counted."""
    kind = type("Session", (SimulatedSession,), {"wrong_at": wrong_at, "endings": endings or {}})
    workers: Any = SimpleNamespace(device=None, title="simulated", off=frozenset())
    case, baseline = Known(), machine
    session = kind(workers, problem, load_sheet("h200"), stage, -1, case.part, sealable=sealable)
    with ExitStack() as held:
        tries = Tries(session, Steadiness(), machine.wait)
        given: Any = baseline
        tries.measure(case, given, held)
        return tries.judged(case), case, kind
