"""How a candidate ended: verdict, errors, timing, tier. Validators make "fast but wrong" impossible to write down."""

from __future__ import annotations

import math
from enum import StrEnum
from typing import Literal, Self

from pydantic import Field, model_validator

from tools.errors import UserError
from tools.records.base import Record
from tools.records.correctness import Correctness
from tools.records.problem import Problem
from tools.records.timing import Estimate, Tier, Timing


class Verdict(StrEnum):
    """The closed enum of outcomes."""

    PASS = "PASS"  # noqa: S105 - a verdict, not a password
    BUILD_FAILED = "BUILD_FAILED"
    CRASHED = "CRASHED"
    TIMED_OUT = "TIMED_OUT"
    WRONG = "WRONG"
    UNSTABLE = "UNSTABLE"
    CHEATED = "CHEATED"
    IMPOSSIBLE_TIME = "IMPOSSIBLE_TIME"
    TIMING_INCONSISTENT = "TIMING_INCONSISTENT"
    BUILT = "BUILT"
    """It compiles, and no more was asked: nothing was run."""
    INFRASTRUCTURE = "INFRASTRUCTURE"
    """Says nothing about the candidate."""


PART = ": "
"""What stands in the name of a phase that is a part of another, behind that one's name."""


class TensorArgument(Record):
    """A tensor as one launch saw it."""

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: str


class Launch(Record):
    """One device operation of a candidate's call, in order of issue, recorded at the problem's own sizes."""

    kind: Literal["triton", "cuda", "library"]
    """`cuda`: one call of a function of the candidate's own extension, which may launch several kernels."""
    name: str
    """Kernel function name, extension function name, or ATen operator."""
    grid: tuple[int, ...] = ()
    num_warps: int = 0
    num_stages: int = 0
    constants: dict[str, bool | int | float | str | None] = Field(default_factory=dict)
    tensors: tuple[TensorArgument, ...] = ()
    nbytes: int
    """Bytes of the distinct tensors it names: what it must at least move."""
    replayed: int = Field(default=0, ge=0)
    """How often one after the other a CUDA graph launches it, each time like this; 0 where the host does."""


class KernelResources(Record):
    """What the compiler gave one kernel on one target: counted, without running it."""

    name: str
    arch: str
    registers: int
    spill_bytes: int
    shared_bytes: int
    stack_bytes: int
    instructions: dict[str, int]
    """Static instruction counts of the machine code by class: load, store, shared, tensor, fp, integer, control, barrier, other.

    Plus `load_bytes_max` and `store_bytes_max`, the widest global access a thread makes, in bytes.
    """


class SeededCall(Record):
    """Where the inputs of one call came from."""

    seed: int
    distribution: str
    runs: int
    """How many times it was run, each with another poison."""


class Seeds(Record):
    """Where the inputs at one size came from: secret while the candidate ran, published since."""

    purpose: Literal["check", "time"]
    size: str
    """As in `Correctness.sizes`."""
    shake: int | None
    """Seed by which parameters that are all equal were moved; None where they were left."""
    calls: tuple[SeededCall, ...]
    """Calls that were planned; those on which the reference has no digits were not judged."""
    patches: int | None = None
    """While timing: seed of the elements that changed from call to call."""


class ShapeResult(Record):
    """What came of a candidate at one of its problem's shapes."""

    name: str
    weight: float
    evaluation: Evaluation


class Evaluation(Record):
    """Verdict, errors, timing and tier of one candidate."""

    candidate: str
    verdict: Verdict
    rule: str | None = None
    """For CHEATED: the id of the rule that caught it."""
    correctness: Correctness | None = None
    timing: Timing | None = None
    estimate: Estimate | None = None
    shapes: tuple[ShapeResult, ...] = ()
    """Of a problem with several: each by itself. `timing` or `estimate` is then of a call on average by their weights."""
    launches: tuple[Launch, ...] = ()
    kernels: tuple[KernelResources, ...] = ()
    provenance: Literal["authored", "mixed", "library", "unknown"] = "unknown"
    """Whose kernels really ran: the candidate's own, both, or only a library's."""
    sandbox: str = ""
    """Which isolation was in force, in words."""
    notes: tuple[str, ...] = ()
    """What was not available or fell back, one sentence each."""
    place: str = ""
    """Host and device that judged it, in words; on the agents' own machine the device alone, and nothing where it has but one."""
    weakened: tuple[str, ...] = ()
    """Defences of the evaluator that a test had switched off; where there are any, the verdict proves nothing and goes into no bundle."""
    seeds: tuple[Seeds, ...] = ()
    """Drawn for this evaluation alone, and written down when it had ended."""
    log: str = ""
    """Tail of what the candidate and its build printed; display only."""
    versions: dict[str, str] = Field(default_factory=dict)
    seconds: float = 0.0
    """Wall time the evaluation took."""
    phase_seconds: dict[str, float] = Field(default_factory=dict)
    """Wall time by phase: start (of the evaluator), build, check, baselines (started for it), time; `place` is what it waited for its
    beginning, and `queue` for its turns on the device. Parts of check and time have `PART` in their names."""
    gpu_seconds: float = 0.0
    """Time it was on a GPU: checked beside others, and timed alone; not what it waited, nor what a compiler took."""

    @model_validator(mode="after")
    def _no_speed_without_correctness(self) -> Self:
        if (self.timing or self.estimate) and self.verdict is not Verdict.PASS:
            raise ValueError(f"a {self.verdict} candidate has no speed")
        if self.verdict is Verdict.PASS:
            if self.correctness is None or not self.correctness.outputs:
                raise ValueError("PASS needs the errors that prove it")
            if not all(output.passed for output in self.correctness.outputs):
                raise ValueError("PASS needs every output within its limits")
        if (self.rule is not None) != (self.verdict is Verdict.CHEATED):
            raise ValueError("exactly a CHEATED verdict names a rule")
        return self

    def demand_whole(self) -> Self:
        """Give itself; raise UserError where defences were switched off: whoever keeps evaluations asks this first."""
        if self.weakened:
            off = ", ".join(self.weakened)
            raise UserError(f"This evaluation is no evidence: defences were switched off ({off}).", "Evaluate again with all of them.")
        return self

    @property
    def doubt(self) -> str:
        """Why it would not be delivered as faster, in a sentence; empty where nothing is known against it."""
        return self.timing.doubt if self.timing and self.timing.unsealed else ""

    @property
    def packing_us(self) -> float | None:
        """What packing the weights takes once, in no call's time: measured or else estimated; None without a step for it."""
        if self.timing:
            return self.timing.packing.time.median_us if self.timing.packing else None
        return self.estimate.packing_us if self.estimate else None

    def packing_pays_after(self, against: str = "") -> int | None:
        """Calls after which that has paid for itself against a baseline, by default the fastest; None where a call gains nothing."""
        if self.packing_us is None or self.time_us is None:
            return None
        if self.timing:
            baseline_us = self.timing.baselines[against or self.timing.best_baseline].median_us
        else:
            assert self.estimate is not None
            baseline_us = self.estimate.eager_us
        return math.ceil(self.packing_us / (baseline_us - self.time_us)) if self.time_us < baseline_us else None

    @property
    def tier(self) -> Tier | None:
        """Tier of the figure this evaluation quotes; None where there is no figure."""
        if self.timing:
            return self.timing.tier
        return Tier.ESTIMATED if self.estimate else None

    @property
    def time_us(self) -> float | None:
        """The candidate's time, measured or else estimated; read it together with `tier`."""
        if self.timing:
            return self.timing.candidate.median_us
        return self.estimate.candidate_us if self.estimate else None

    @property
    def worst_shape(self) -> ShapeResult | None:
        """The shape at which it gains least; None where the problem has one alone."""
        known = [shape for shape in self.shapes if shape.evaluation.speedup is not None]
        return min(known, key=lambda shape: shape.evaluation.speedup or 0.0, default=None)

    def dominant(self, problem: Problem) -> tuple[Problem, Evaluation]:
        """Give the problem and what came of it at the shape that takes most of the time by its weight; itself where there is one alone."""
        if not self.shapes or len(self.shapes) != len(problem.shapes):
            return problem, self
        pairs = zip(problem.shapes, self.shapes, strict=True)
        shape, found = max(pairs, key=lambda pair: pair[1].weight * (pair[1].evaluation.time_us or 0.0))
        return problem.at(shape), found.evaluation

    @property
    def speedup(self) -> float | None:
        """Time of the fastest baseline over the candidate's, of one session and one tier; None where there is no figure."""
        if self.timing:
            return min(value for value, _, _ in self.timing.speedups.values())
        return self.estimate.speedup if self.estimate else None
