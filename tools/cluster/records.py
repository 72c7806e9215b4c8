"""What travels between a pool and its evaluators on a Ray cluster, as JSON text."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import model_validator

from tools.profiling.ncu import Counters
from tools.records import Baselines, Evaluation, EvaluationRequest, HardwareSheet, Problem, Record


class Failure(Record):
    """An error of the node, or of what the user gave, passed on as such."""

    kind: Literal["machine", "user"] = "machine"
    what: str
    mend: str


class Facts(Record):
    """What an evaluator says of itself when it begins."""

    host: str
    node: str
    """Ray's id of the node."""
    device: str
    """Title of its GPU as the driver reports it; empty for the interpreter."""
    unit: str
    """Which GPU of the host, by number; empty for the interpreter."""
    code: str
    """Hash of kernelwright's own files there."""
    versions: dict[str, str]
    keys: tuple[str, ...] = ()
    """Names of variables that look like keys in the environment that Ray was started with there."""

    @property
    def place(self) -> str:
        """Read as `gpu7, GPU 3 (NVIDIA H200)`."""
        return f"{self.host}, GPU {self.unit} ({self.device})" if self.device else f"{self.host} (interpreter)"


class Question(Record):
    """One thing asked of an evaluator."""

    evaluation: EvaluationRequest | None = None
    counters: EvaluationRequest | None = None
    problem: Problem | None = None
    """Whose reference is to be timed, on `target`."""
    target: HardwareSheet | None = None
    calibration: bool = False
    """How long the calibration kernel takes."""


class Reply(Record):
    """What came of a question: exactly one thing."""

    evaluation: Evaluation | None = None
    baselines: Baselines | None = None
    counters: Counters | None = None
    calibration_us: float | None = None
    failure: Failure | None = None

    @model_validator(mode="after")
    def _is_one_thing(self) -> Self:
        if sum(value is not None for value in (getattr(self, name) for name in type(self).model_fields)) != 1:
            raise ValueError("a reply is exactly one thing")
        return self
