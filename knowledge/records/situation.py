"""A situation: where a strategy applies."""

from __future__ import annotations

import json
import math

from pydantic import Field

from tools.records import Bottleneck, OperatorFamily, Record

_NAMED = ("families", "operators", "bottleneck", "backend", "generation", "dtypes", "summary")
"""Fields of a situation that name a strategy, in the order of schema 1: ids outlive schemas."""


class Situation(Record):
    """Where a strategy applies: typed filters, and words for the vectors."""

    families: tuple[OperatorFamily, ...]
    """Heaviest first."""
    operators: tuple[str, ...] = ()
    """ATen operators of the problem, in order, without repeats."""
    bottleneck: Bottleneck | None = None
    """None where a strategy applies whatever the bottleneck."""
    backend: str = "triton"
    """`triton` or `cuda`."""
    generation: str | None = None
    """Hardware generation (`hopper`); None where it applies to any."""
    dtypes: tuple[str, ...] = ()
    summary: str = ""
    """One or two sentences of plain words: this is what is embedded."""
    graph: str = ""
    """Signature of the operator graph: hash of its ATen operators in order, repeats included; empty where it applies to any."""
    shapes: str = ""
    """Class of the shapes, e.g. `many-short` rows (`knowledge.records.describe`); empty where it applies to any."""
    policy: str = ""
    """Name of the precision policy; empty where it applies to any."""
    device: str = ""
    """Hardware sheet; empty where it applies to any."""
    figures: dict[str, float] = Field(default_factory=dict)
    """The profile's figures behind the bottleneck, by name; they describe and never name a situation."""

    @property
    def start(self) -> float | None:
        """Share of the roofline floor that has been reached; None where it is not known."""
        share = self.figures.get("floor_share")
        return share if share is not None and 0 < share < math.inf else None

    @property
    def named(self) -> tuple[str, ...]:
        """What of it names a strategy: the fields of schema 1, then those added since where they restrict anything."""
        kept = {name: value for name, value in self.model_dump(mode="json").items() if name in _NAMED}
        first = json.dumps(kept, separators=(",", ":"), ensure_ascii=False)
        return (first, *(f"{name}={value}" for name in ("graph", "shapes", "policy") if (value := getattr(self, name))))
