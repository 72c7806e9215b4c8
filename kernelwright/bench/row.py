"""One line of results: what one run of one problem came to, complete enough that a report needs nothing else."""

from __future__ import annotations

from enum import StrEnum
from typing import Literal

from pydantic import Field

from tools.records import Admission, Record, Spent

ROW_VERSION = 1
"""Raised when a field changes its meaning; a report refuses rows of another version."""

FLAGS_OF = "flags of "
"""Before a policy's name: the fastest baseline under its flags."""


class Status(StrEnum):
    """How a problem ended under an arm."""

    KERNEL = "kernel"
    """A kernel was delivered: confirmed right, and faster than the better baseline beyond the noise."""
    REFERENCE = "reference"
    """No win: the user keeps the reference."""
    NOT_JUDGEABLE = "not judgeable"
    """The reference is no function of its inputs (live dropout): nothing can be compared with it."""
    UNREADABLE = "unreadable"
    """The file holds no problem that could be loaded; its reason says why, and a resume tries it again."""
    FAILED = "failed"
    """The machine, a server or kernelwright itself failed: it says nothing about the problem, and a resume tries it again."""


UNDONE = frozenset({Status.FAILED, Status.UNREADABLE})
"""What says nothing about a problem: the same command tries it again, after the machine or the file was mended."""


class Step(Record):
    """One evaluation of the search, in order."""

    speedup: float
    """Best speed-up so far against the better baseline, 1.0 while nothing was right and faster."""
    gpu_s: float
    """GPU seconds of all evaluations so far."""


class ResultRow(Record):
    """One problem under one arm and one seed."""

    version: int = ROW_VERSION
    bench: str
    """`BenchSettings.id`."""
    problem: str
    """Name in the suite."""
    level: int
    number: int
    arm: str
    seed: int
    status: Status
    reason: str
    basis: Literal["measured", "estimated", "none"]
    """Whether its times were measured or come from a model: the two are never put into one table. None where there are no times."""
    run: str = ""
    """Name of the run, for `kernelwright trace`; empty where none was begun."""
    problem_id: str = ""
    families: tuple[str, ...] = ()
    """Heaviest first."""
    training: bool | None = None
    """Mode of the reference's module: True is training, as KernelBench's own harness leaves it."""
    admission: Admission | None = None
    """What admission found out about the problem; None where it was not examined."""
    marks: tuple[str, ...] = ()
    """What is degenerate about the problem, by admission; empty where nothing is, or nothing was examined."""
    right: bool = False
    """Whether any candidate passed every check."""
    speedups: dict[str, tuple[float, float, float]] = Field(default_factory=dict)
    """Of what was delivered, in the confirming session: by baseline the ratio and its 95 % interval; one point where estimated."""
    best_right: dict[str, float] = Field(default_factory=dict)
    """Of the fastest right candidate of the search, by baseline, delivered or not: never confirmed."""
    candidate_us: float | None = None
    """Time of what was delivered, microseconds."""
    tier: str = ""
    packing_us: float | None = None
    """What packing its weights takes once, in no call's time, microseconds; None without a step for it."""
    packing_pays_after: int | None = None
    """Calls after which that has paid for itself against the better baseline."""
    shapes: dict[str, tuple[float, float]] = Field(default_factory=dict)
    """Of a problem with several, by name: the delivered kernel's time there, microseconds, and its speed-up over the better baseline."""
    baselines_us: dict[str, float] = Field(default_factory=dict)
    """Reference alone, microseconds; `eager` alone where estimated."""
    other_baselines_us: dict[str, dict[str, float]] = Field(default_factory=dict)
    """By policy: the reference alone under its flags, microseconds, where that was asked for."""
    floor_us: float = 0.0
    """Roofline floor on the target, microseconds: computed from the datasheet's peak rates."""
    relative_l2: float | None = None
    """Worst error of what was delivered, against float64."""
    reference_relative_l2: float | None = None
    verdicts: dict[str, int] = Field(default_factory=dict)
    """Evaluations by verdict, confirming ones too."""
    curve: tuple[Step, ...] = ()
    spent: Spent = Spent()
    seconds: float = 0.0
    """Wall time from the start of the problem's reading to its end, in this session."""
    ended: str = ""
    """Why the search ended."""
    code: str = ""
    """`Header.code` of the kernelwright that wrote the row."""
    device: str = ""
    places: dict[str, int] = Field(default_factory=dict)
    """What was judged where: evaluations, and timings of the reference, by host and device; `here` is the bench's own machine."""
    throttled: bool | None = None
    versions: dict[str, str] = Field(default_factory=dict)
    notes: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        """What the row is about."""
        return f"{self.problem}|{self.arm}|{self.seed}"

    @property
    def development(self) -> bool:
        """KernelBench's problems whose number leaves 1 by 3 are what the built-in agents are developed on."""
        return bool(self.level) and self.number % 3 == 1

    @property
    def judgeable(self) -> bool:
        """Whether there was anything to win."""
        return self.status not in {Status.NOT_JUDGEABLE, Status.UNREADABLE}

    def speedup(self, against: str) -> float:
        """Ratio against `eager`, `compile`, … or `better` (the fastest baseline); 1.0 where the reference is kept.

        `flags of POLICY` is the fastest baseline under another policy's flags, timed by itself. NaN where a kernel was delivered and
        this baseline was not timed.
        """
        if self.status is not Status.KERNEL:
            return 1.0
        if against.startswith(FLAGS_OF):
            times = self.other_baselines_us.get(against.removeprefix(FLAGS_OF), {})
            return min(times.values()) / self.candidate_us if times and self.candidate_us else float("nan")
        if against == "better":
            return min(value for value, _, _ in self.speedups.values())
        return self.speedups[against][0] if against in self.speedups else float("nan")
