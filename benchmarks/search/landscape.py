"""A landscape: real schedules of real problems with their recorded times, so that search methods can run without a device.

A file is JSON lines: a header that says on what it was recorded, then one line a problem. `record_landscape.py` writes it.
"""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Self

from pydantic import Field, ValidationError, model_validator

from tools.errors import UserError
from tools.records import ROOT, Action, Record, Verdict

SCHEMA = 1
"""Version of the lines; a file of another one is refused."""
LANDSCAPES = Path(__file__).with_name("landscapes")
"""The recorded tables."""


class LandscapeHeader(Record):
    """Where the times come from."""

    schema_version: int = SCHEMA
    synthetic: bool
    """True where the times were made up for tests: never shipped."""
    device: str
    recorded: str
    """Date."""
    versions: dict[str, str]
    method: str
    """How times were taken, in a sentence."""
    commit: str = ""


class Place(Record):
    """One schedule: what came of it when it ran."""

    id: str
    """Hash of the emitted source; ROOT for the reference."""
    verdict: Verdict = Verdict.PASS
    time_us: float = Field(default=0.0, ge=0)
    """Median; 0 where it did not pass."""
    low_us: float = 0.0
    """25th percentile."""
    high_us: float = 0.0
    """75th percentile."""
    signature: str = ""
    lines: int = 0
    registers: float = 0.0
    shared_bytes: float = 0.0
    threads: float = 0.0
    left: int = 0
    """Regions left to the library."""

    @model_validator(mode="after")
    def _times_only_what_passed(self) -> Self:
        if (self.time_us > 0) != (self.verdict is Verdict.PASS):
            raise ValueError("exactly what passed has a time")
        return self


class Step(Record):
    """One action between two places."""

    start: str
    action: Action
    end: str


class Landscape(Record):
    """The recorded places of one problem and the steps between them."""

    problem: str
    families: tuple[str, ...] = ()
    eager_us: float = Field(gt=0)
    compile_us: float | None = Field(default=None, gt=0)
    """torch.compile's default mode; None where it was not timed."""
    floor_us: float = Field(default=0.0, ge=0)
    """Compulsory bytes over the device's memory rate."""
    omitted: int = 0
    """Steps that lead to places which were not recorded."""
    places: tuple[Place, ...]
    steps: tuple[Step, ...]

    @model_validator(mode="after")
    def _steps_join_places(self) -> Self:
        known = {place.id for place in self.places} | {ROOT}
        strays = [step for step in self.steps if step.start not in known or step.end not in known]
        if strays:
            raise ValueError(f"a step joins places that are not recorded: {strays[0].start} to {strays[0].end}")
        return self

    @property
    def baseline_us(self) -> float:
        """Time of the better baseline."""
        return min(self.eager_us, self.compile_us or self.eager_us)

    @cached_property
    def by_id(self) -> dict[str, Place]:
        """Places by id."""
        return {place.id: place for place in self.places}

    @cached_property
    def from_place(self) -> dict[str, tuple[Step, ...]]:
        """Steps by where they start, in the recorded order."""
        found: dict[str, list[Step]] = {}
        for step in self.steps:
            found.setdefault(step.start, []).append(step)
        return {start: tuple(steps) for start, steps in found.items()}

    @property
    def best_speedup(self) -> float:
        """Of the fastest place against the better baseline; 1 where none is faster."""
        return max([1.0, *(self.baseline_us / place.time_us for place in self.places if place.time_us)])


def landscape_files() -> tuple[Path, ...]:
    """List the recorded tables of the repository; none until one was recorded."""
    return tuple(sorted([*LANDSCAPES.glob("*.jsonl"), *LANDSCAPES.glob("*.jsonl.gz")]))


def load_landscapes(path: Path) -> tuple[LandscapeHeader, tuple[Landscape, ...]]:
    """Read one table; UserError where a line is not what it should be."""
    lines = list(_lines(path))
    if not lines:
        raise UserError(f"{path} is empty.", "Record it with `python -m benchmarks.search.record_landscape`.")
    try:
        header = LandscapeHeader.model_validate_json(lines[0])
        if header.schema_version != SCHEMA:
            raise UserError(f"{path} has schema {header.schema_version}; this version reads {SCHEMA}.", "Record it again.")
        return header, tuple(Landscape.model_validate_json(line) for line in lines[1:])
    except ValidationError as error:
        raise UserError(f"{path} is no recorded landscape: {error.errors()[0]['msg']}.", "Record it again.") from None


def _lines(path: Path) -> Iterator[str]:
    try:
        text = gzip.decompress(path.read_bytes()).decode() if path.suffix == ".gz" else path.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(
            f"{path} cannot be read: {error}.", "Name a table written by `python -m benchmarks.search.record_landscape`."
        ) from None
    return (line for line in text.splitlines() if line.strip())
