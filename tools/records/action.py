"""An action: one macro step on a schedule or a source."""

from __future__ import annotations

import json
from enum import StrEnum

from pydantic import Field, field_validator

from tools.records.base import Record, content_hash
from tools.records.renamed import Value, first_parameters, present_parameters


class ActionKind(StrEnum):
    """The closed vocabulary of macro steps; `tools.actions.guide` says what each means."""

    TILING = "tiling"
    FUSION = "fusion"
    PIPELINE = "pipeline"
    REORDERING = "reordering"
    VECTORISATION = "vectorisation"
    LAYOUT = "layout"
    PRECISION = "precision"
    ALGORITHM = "algorithm"
    LAUNCH = "launch"
    REWRITE = "rewrite"
    """Another design in words, written as a whole: only a language model carries it out."""


IDEA = "idea"
"""Parameter of a rewrite: the design in a sentence, which is its identity."""
ATTEMPT = "attempt"
"""Parameter of a rewrite whose writer states the idea itself: its number in the run."""


class Action(Record):
    """A kind, its parameters, and the region it applies to."""

    kind: ActionKind
    region: str
    """Id of a region of the parent's schedule (`r0`, `r0+r1` for a fusion of two), or a function name of an LLM's source."""
    parameters: dict[str, bool | int | float | str] = Field(default_factory=dict)
    """Named in the guide for this kind."""

    @field_validator("parameters")
    @classmethod
    def _in_todays_words(cls, parameters: dict[str, Value]) -> dict[str, Value]:
        return present_parameters(parameters)

    @property
    def id(self) -> str:
        """Content hash: equal actions have equal ids, in whatever words they were written."""
        return content_hash(self.kind, self.region, json.dumps(first_parameters(self.parameters), sort_keys=True))

    def __str__(self) -> str:
        """Read as `tiling r0 (BLOCK_N=1024)`."""
        inner = ", ".join(f"{k}={v}" for k, v in self.parameters.items())
        return f"{self.kind} {self.region}" + (f" ({inner})" if inner else "")
