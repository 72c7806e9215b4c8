"""What processes for whole models are asked, and what they answer."""

from __future__ import annotations

from pydantic import Field

from tools.models.records import Capture
from tools.records import HardwareSheet, PrecisionPolicy, Record

EAGER, OURS, COMPILED, COMPILED_OURS = "eager", "eager, ours", "torch.compile", "torch.compile, ours"
AUTOTUNED, AUTOTUNED_OURS = "max-autotune", "max-autotune, ours"
WITHOUT = "eager, ours without "
IN_GRAPH = ", CUDA graph"
"""Ways in which a whole model is run, as its times name them; each of them may be recorded as a CUDA graph and replayed."""


class CaptureJob(Record):
    """A model's file to be run under its workloads."""

    file: str
    factory: str
    device: str
    """`cpu` or `cuda`."""
    policy: PrecisionPolicy
    largest: int
    """ATen operators of a module that is looked at as a whole."""
    autocast: str
    """Dtype of autocast around the workloads; empty for what the file says."""
    threads: int


class CaptureAnswer(Record):
    """What was captured, or what is wrong with the file."""

    capture: Capture | None = None
    what: str = ""
    mend: str = ""


PROOF_S = 900.0
"""Limit of proving a model, seconds: what was found by then counts."""


class OutputProof(Record):
    """One output of the whole model under one workload and seed."""

    workload: str
    output: int
    dtype: str
    error: float
    """Relative L2 distance from the oracle with the operators in place."""
    own: float
    """The original's."""
    limit: float

    @property
    def holds(self) -> bool:
        """Whether it is right."""
        return self.error <= self.limit


class Proof(Record):
    """What the whole model does with the operators in place."""

    oracle: str = ""
    """Dtype that outputs are compared with."""
    outputs: tuple[OutputProof, ...] = ()
    replaced: tuple[str, ...] = ()
    """Paths of the modules."""
    hits: dict[str, int] = Field(default_factory=dict)
    misses: dict[str, int] = Field(default_factory=dict)
    breaks: dict[str, int] = Field(default_factory=dict)
    """Graph breaks under torch.compile, `without` and `with` the operators; empty where they were not looked for."""
    restored: bool = False
    """Whether `remove` brings back every output to the bit, and the state dict stayed as it was all the time."""
    times: dict[str, dict[str, tuple[float, ...]]] = Field(default_factory=dict)
    """Microseconds of each round, by way of running the model and by workload."""
    opaque: bool = False
    """Whether torch.compile does not get the operators' kernels into its graph, as that failed."""
    notes: tuple[str, ...] = ()
    what: str = ""
    """Why there is no proof; empty where there is one."""
    mend: str = ""

    @property
    def holds(self) -> bool:
        """Whether all outputs are right and the model can be had back."""
        return not self.what and bool(self.outputs) and all(one.holds for one in self.outputs) and self.restored


class ProofJob(Record):
    """A model to be run with and without a package."""

    file: str
    """The user's, whose folder it may import from."""
    source: str
    beside: dict[str, str]
    """Text of files in its folder that it imports, by path."""
    factory: str
    autocast: str
    """As in `CaptureJob`."""
    device: str
    policy: PrecisionPolicy
    sheet: HardwareSheet
    package: dict[str, str]
    """Text of its files by path."""
    operators: tuple[str, ...]
    """Whose share of the gain is to be found by leaving each out."""
    timed: bool
    compiled: bool
    """Whether torch.compile is a baseline, and is timed with the operators, too."""
    max_autotune: bool
    rounds: int
    seed: int
    threads: int
    limit_s: float
    """What it may take."""
    known: Proof | None = None
    """What an earlier proof of the same operators on the same inputs found: only times are asked for."""
