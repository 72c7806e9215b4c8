"""What the work on a whole model is asked for, and what came of it."""

from __future__ import annotations

from pydantic import Field

from graphs.run.settings import RunSettings
from tools.models.choosing.chosen import Chosen
from tools.models.jobs import PROOF_S, Proof
from tools.models.records import LARGEST, Capture
from tools.records import Record

MOST = 6
"""Operators that are optimised at most."""
ROUNDS = 30
"""Timed runs of the whole model for each way of running it."""


class ModelSettings(Record):
    """What the user asked for."""

    run: RunSettings
    """Of each operator's run; its budget is replaced."""
    budget: int = Field(default=8, ge=0)
    """Evaluations an operator, on average; those with more to gain get more. With 0 kernels are the cost model's first choices."""
    most: int = Field(default=MOST, ge=1)
    largest: int = Field(default=LARGEST, ge=1)
    """ATen operators of a module that is made into one operator, at most."""
    minutes: float = Field(default=0.0, ge=0)
    """Wall time of all operators' runs together, each its part; 0: no limit."""
    jobs: int = Field(default=0, ge=0)
    """Operators that are worked on at once; 0: one for every four cores, four at most."""
    compiled: bool = True
    """Whether torch.compile is looked at."""
    max_autotune: bool = False
    rounds: int = Field(default=ROUNDS, ge=3)
    autocast: str = ""
    """What torch.autocast rounds to around each call of the model; empty for what its file says."""
    proof_s: float = Field(default=PROOF_S, gt=0)
    """What one proof of the whole model may take, compiling it too; what was found by then counts."""


class OperatorOutcome(Record):
    """What came of one chosen group."""

    name: str
    run: str
    """The run's name; empty where there was none."""
    reason: str
    """Why it was delivered, or was not."""
    delivered: bool
    speedup: float = 0.0
    """Of the operator by itself, against the better baseline; 0 where it was not delivered."""
    tier: str = ""
    """How far that can be trusted."""
    digest: str = ""
    """Of its evidence bundle."""
    taken_out: str = ""
    """Why it was taken out of the package again; empty where it is in it."""

    @property
    def kept(self) -> bool:
        """Whether it is in the package."""
        return self.delivered and not self.taken_out


class Ratio(Record):
    """One way of running the model over another, all workloads by their weights."""

    over: str
    under: str
    value: float
    low: float
    high: float
    """95 % interval."""


class Outcome(Record):
    """What the work on a model came to; `report.json` is this."""

    file: str
    factory: str
    target: str
    device: str
    """`cuda` or `cpu`."""
    policy: str
    autocast: str = ""
    """What `--autocast` said."""
    capture: Capture
    chosen: tuple[Chosen, ...]
    operators: tuple[OperatorOutcome, ...]
    proof: Proof
    ratios: tuple[Ratio, ...] = ()
    """Measured ends of the whole model; empty where nothing was timed."""
    expected: float = 1.0
    """Speed-up of the whole model by shares and the operators' own speed-ups, estimated."""
    package: str = ""
    """Folder of the package; empty where no operator is in it."""
    seconds: float = 0.0
    under_way: bool = False
    """Whether operators or the proof are still to come; a report is written when none are."""
