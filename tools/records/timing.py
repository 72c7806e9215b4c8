"""What a candidate takes: measured times with their tier, and a model's estimate where nothing was timed."""

from __future__ import annotations

from enum import StrEnum
from typing import Literal, Self

from pydantic import Field, model_validator

from tools.records.base import Record

Against = Literal["better", "eager"]
"""What a kernel is compared with: the better of eager and torch.compile, or eager alone, for those who compile nothing."""


class Tier(StrEnum):
    """How far a time can be trusted."""

    SEALED = "sealed"
    BRACKETED = "bracketed"
    IN_PROCESS = "in-process"
    ESTIMATED = "estimated"
    """Nothing was timed."""


class Sample(Record):
    """Times of one thing, in microseconds."""

    median_us: float = Field(gt=0)
    low_us: float
    """25th percentile."""
    high_us: float
    """75th percentile."""
    count: int


class RawTimes(Record):
    """Every time of one session in the order it was measured, microseconds: what the samples of a `Timing` are made of."""

    candidate: tuple[float, ...]
    baselines: dict[str, tuple[float, ...]]
    bracket: tuple[float, ...] = ()
    """A call of the candidate by a clock outside of its process, one figure for each chain of calls."""
    bracket_warm: tuple[float, ...] = ()
    """The same where nothing clears the L2 between the calls."""
    charged: float = 0.0
    """What that clock had beyond the events: it is in each of the candidate's times."""
    idle_event: tuple[float, ...] = ()
    """In records of earlier versions: calls on an idle device, as the candidate's own process says."""
    answer: tuple[float, ...] = ()
    """In records of earlier versions: the same calls by the supervisor's clock."""
    overhead: tuple[float, ...] = ()
    """In records of earlier versions: answer less event of the eager baseline on an idle device."""
    packing: tuple[float, ...] = ()
    """Of packing the weights once more, as the candidate's own process says, or the sealed one."""
    alone_before: dict[str, tuple[float, ...]] = Field(default_factory=dict)
    """The baselines by themselves, before the candidate's process was started."""
    alone_after: dict[str, tuple[float, ...]] = Field(default_factory=dict)
    """The same after it had ended."""


class Packing(Record):
    """What the declared step that packs weights took: once for all calls, and in no call's time."""

    time: Sample
    tier: Tier
    """In-process, or sealed; a hint in either case, since nothing is ranked by it."""
    nbytes: int | None = None
    """Memory that it fills and that calls read, where the launches are known."""


class Timing(Record):
    """Measured times: the candidate's and, interleaved with it in one session, the baselines'."""

    tier: Tier
    candidate: Sample
    bracket: Sample | None = None
    """A call of the candidate by a clock outside of its process, around chains of calls."""
    baselines: dict[str, Sample]
    """By name: `eager`, `compile`."""
    speedups: dict[str, tuple[float, float, float]]
    """By baseline: ratio of medians, with the lower and upper end of its 95 % bootstrap interval."""
    device: str
    clock_mhz: float | None = None
    """Median SM clock read by NVML while timing."""
    power_w: float | None = None
    throttled: bool | None = None
    """Whether NVML reported a throttle reason while timing; None where it could not be read."""
    packing: Packing | None = None
    """Of a candidate that packs its weights in a step of their own."""
    sealed_us: float | None = None
    """Where the slower figure of the candidate's own process is published: the median without its host code, microseconds."""
    unsealed: str = ""
    """Why its launches cannot be timed without its host code, in words; empty where they can, or nobody looked."""
    raw: RawTimes | None = None
    """None in evaluations of versions that did not keep it."""

    @model_validator(mode="after")
    def _is_measured(self) -> Self:
        if self.tier is Tier.ESTIMATED:
            raise ValueError("a Timing is measured; put an estimated time into Estimate")
        return self

    @property
    def is_vouched_for(self) -> bool:
        """Whether more than the candidate's own process stands for it: it is sealed or bracketed, or its launches alone take no longer."""
        lower = self.sealed_us is not None and self.sealed_us <= self.candidate.median_us
        return lower or self.tier in (Tier.SEALED, Tier.BRACKETED)

    @property
    def doubt(self) -> str:
        """Why a kernel of this time is not delivered as faster, and what would mend it, in a sentence; empty where more stands for it."""
        if self.is_vouched_for:
            return ""
        why = f", since {self.unsealed}" if self.unsealed else ""
        word = f"{self.tier}; not bracketed, and not sealed{why}"
        return f"As it is it is not delivered as faster: only its own process says how fast it is ({word})."

    @property
    def best_baseline(self) -> str:
        """Name of the fastest baseline."""
        return min(self.baselines, key=lambda name: self.baselines[name].median_us)


class Estimate(Record):
    """A model's guess where nothing was timed; never mixed with a Timing."""

    target: str
    """Hardware sheet name."""
    candidate_us: float = Field(gt=0)
    eager_us: float = Field(gt=0)
    """The same model applied to the operators of eager execution."""
    floor_us: float = Field(gt=0)
    """Roofline floor of the problem on the target."""
    packing_us: float | None = Field(default=None, gt=0)
    """The same model applied to the step that packs weights, where the candidate has one: in no call's time."""
    model: str
    """Name and version of the model that made it."""

    @property
    def speedup(self) -> float:
        """Estimated eager time over estimated candidate time."""
        return self.eager_us / self.candidate_us
