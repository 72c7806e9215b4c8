"""One evaluator as a pool sees it, and what Ray is to place it on."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from typing import Any

from pydantic import ValidationError

from tools.cluster.evaluator import actor_class
from tools.cluster.records import Facts, Failure, Reply
from tools.cluster.station import Order
from tools.errors import KernelwrightError, MachineError, UserError

PLACE_S = 120.0
"""How long a place is waited for on a cluster of one's own, which nobody else uses and which does not grow."""
PATIENCE_S = 1800.0
"""The same where others may hold what is needed, or a node has to be added."""
BEGIN_S = 300.0
"""How long one that has been placed may take to begin; to import torch and to time a kernel are limited to 120 s each."""


@dataclass(frozen=True)
class Needs:
    """What Ray is to place an evaluator on, and what it does there."""

    opener: str
    order: Order
    options: tuple[tuple[str, Any], ...]
    """Of Ray's actors: processors, GPUs, kind of GPU."""
    title: str = ""
    """What its GPU must be called; empty for the interpreter."""
    words: str = "1 processor"
    place_s: float = PATIENCE_S
    """How long a place is waited for while there is none at all."""
    begin_s: float = BEGIN_S


@dataclass(eq=False)
class Member:
    """One evaluator."""

    handle: Any
    host: str = ""
    """Where Ray has placed it; empty before."""
    doing: str = "opens its pool"
    """What it is at while it begins."""
    facts: Facts | None = None
    busy: int = 0
    out: str = ""
    """Why it is not used again; it keeps its place all the same, so that nobody is put there."""
    idle_since: float = 0.0
    calibration_us: float = 0.0
    note: str = ""
    begun: bool = False
    """Whether it has been looked at, and its GPU timed: it is asked nothing before, and is not idle."""

    @property
    def ready(self) -> bool:
        """Whether it can be asked."""
        return self.begun and not self.out

    @property
    def place(self) -> str:
        """Where it is, in words."""
        if self.facts is not None:
            return self.facts.place
        return f"an evaluator on {self.host}" if self.host else "an evaluator"

    def kill(self) -> None:
        """End it, wherever it is."""
        import ray

        with suppress(Exception):
            ray.kill(self.handle)


@cache
def _actors() -> Any:
    import ray

    return ray.remote(actor_class())


def asked_for(needs: Needs) -> Member:
    """Have Ray place one; it takes its time."""
    return Member(_actors().options(**dict(needs.options)).remote(needs.opener, dict(vars(needs.order))))


def failed(failure: Failure, place: str) -> KernelwrightError:
    """Make an error again of one that was told."""
    kind = UserError if failure.kind == "user" else MachineError
    return kind(f"{failure.what} ({place})" if place else failure.what, failure.mend)


def read_facts(said: str) -> Facts:
    """Read what an evaluator says of itself; MachineError where it says what failed."""
    try:
        return Facts.model_validate_json(said)
    except ValidationError:
        failure = Reply.model_validate_json(said).failure
        assert failure is not None
        raise MachineError(failure.what, failure.mend) from None


def short(error: BaseException) -> str:
    """The telling line of an error of Ray's, which has many."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    told = [line for line in lines if "kernelwright" in line] or lines or [type(error).__name__]
    return told[-1][:300]
