"""What tuning found before, kept from run to run: by problem, hardware, versions and what the tuned regions do."""

from __future__ import annotations

import math
import sqlite3
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

from pydantic import Field, field_validator

from tools.codegen import OperatorGraph, Region
from tools.codegen.templates.shared.knob import Value
from tools.errors import MachineError
from tools.records import Record, content_hash
from tools.records.renamed import first_parameters, first_templates, present_parameters

FILE = "tuned.db"
_TABLE = """CREATE TABLE IF NOT EXISTS tuned (
    problem TEXT NOT NULL, hardware TEXT NOT NULL, versions TEXT NOT NULL, work TEXT NOT NULL, created REAL NOT NULL, json TEXT NOT NULL,
    PRIMARY KEY (problem, hardware, versions, work))"""


class Tuned(Record):
    """The best parameters that were measured for the regions of one schedule."""

    problem: str
    """Problem id."""
    hardware: str
    """Hardware sheet name."""
    versions: str
    """Of torch and triton, e.g. `torch 2.11.0, triton 3.6.0`."""
    work: str
    """Signature of what the regions do, sizes left out."""
    sizes: tuple[int, ...]
    """Elements of each tensor that the regions' operators give, at the sizes as written."""
    parameters: tuple[dict[str, Value], ...]
    """By region, in order."""
    time_us: float = Field(gt=0)
    tier: str
    """`estimated`, or how the time was measured: the two are never compared."""

    @field_validator("parameters")
    @classmethod
    def _in_todays_words(cls, parameters: tuple[dict[str, Value], ...]) -> tuple[dict[str, Value], ...]:
        return tuple(present_parameters(each) for each in parameters)


class TuningCache:
    """A file of `Tuned` records in a folder; several processes may use it at once."""

    def __init__(self, folder: Path) -> None:
        """Use `folder`, which is made when something is first kept."""
        self._folder = folder

    def keep(self, found: Tuned) -> None:
        """Write down what was found; a slower time of the same key replaces nothing."""
        key = (found.problem, found.hardware, found.versions, found.work)
        with self._open() as file:
            rows = file.execute("SELECT json FROM tuned WHERE problem = ? AND hardware = ? AND versions = ? AND work = ?", key).fetchall()
            known = [Tuned.model_validate_json(row[0]) for row in rows]
            if not any(_is_estimate(one) == _is_estimate(found) and one.time_us <= found.time_us for one in known):
                file.execute("INSERT OR REPLACE INTO tuned VALUES (?, ?, ?, ?, ?, ?)", (*key, time.time(), found.model_dump_json()))

    def recall(self, problem: str, hardware: str, versions: str, work: str, sizes: tuple[int, ...], *, limit: int = 2) -> tuple[Tuned, ...]:
        """Return what was found for the same work on the same hardware: this problem first, then these versions, then the nearest sizes."""
        if not (self._folder / FILE).is_file():
            return ()
        with self._open() as file:
            rows = file.execute("SELECT json FROM tuned WHERE hardware = ? AND work = ?", (hardware, work)).fetchall()
        known = [Tuned.model_validate_json(row[0]) for row in rows]
        near = sorted(known, key=lambda one: (one.problem != problem, one.versions != versions, _distance(one.sizes, sizes), one.problem))
        return tuple(near[:limit])

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            with closing(sqlite3.connect(self._folder / FILE, timeout=30)) as file, file:
                file.execute(_TABLE)
                yield file
        except (sqlite3.Error, OSError, ValueError) as error:
            raise MachineError(
                f"The tuning cache {self._folder / FILE} cannot be used: {error}.",
                "Delete it: it only saves evaluations, and is made anew.",
            ) from error


def work_of(regions: Sequence[tuple[OperatorGraph, Region]]) -> str:
    """Sign what regions do: operators, dtypes, templates and the parameters that are no numbers."""
    parts = []
    for graph, region in regions:
        words = {name: value for name, value in first_parameters(region.parameters).items() if isinstance(value, str)}
        nodes = [(node.op, [meta.dtype for meta in node.outputs]) for node in map(graph.by_name.__getitem__, region.nodes)]
        parts.append(f"{first_templates(region.template)} {sorted(words.items())} {nodes}")
    return content_hash(*parts)


def sizes_of(regions: Sequence[tuple[OperatorGraph, Region]]) -> tuple[int, ...]:
    """Count the elements of every tensor that the regions' operators give."""
    return tuple(meta.numel for graph, region in regions for name in region.nodes for meta in graph.by_name[name].outputs)


def _distance(one: tuple[int, ...], two: tuple[int, ...]) -> float:
    if len(one) != len(two):
        return math.inf
    return sum(abs(math.log2(max(a, 1) / max(b, 1))) for a, b in zip(one, two, strict=True))


def _is_estimate(found: Tuned) -> bool:
    return found.tier == "estimated"
