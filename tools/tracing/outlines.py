"""A run in outline: the few figures of each evaluation and call that lists and plots need, read without the records around them.

A record of an evaluation holds every single time; of a run of thousands they are read in a tenth of a second here, and in seconds whole.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from tools.records import Tier
from tools.tracing.database import Database

_JUDGED = """
SELECT id, subject, created, verdict, tier, measured_us, speedups, estimated_us, eager_us
FROM records INDEXED BY evaluations_in_outline WHERE kind = 'evaluation' AND created >= ? ORDER BY created, id
"""
_CANDIDATES = "SELECT id, subject AS parent, created FROM records WHERE kind = 'candidate' AND created >= ? ORDER BY created, id"
_CALLS = "SELECT created, COALESCE(usd, 0.0) AS usd FROM calls INDEXED BY calls_by_cost ORDER BY created"


class Judged(NamedTuple):
    """How one evaluation ended."""

    id: str
    candidate: str
    created: float
    """Seconds since the epoch."""
    verdict: str
    tier: str | None
    time_us: float | None
    """Measured, or else estimated; read it together with `tier`."""
    speedup: float | None
    """Over the fastest baseline."""


class Written(NamedTuple):
    """One candidate."""

    id: str
    parent: str
    created: float


class Outline:
    """Reads a run's file."""

    def __init__(self, database: Database) -> None:
        """Read `database`."""
        self._db = database

    def judged(self, since: float = 0.0) -> list[Judged]:
        """Every evaluation that was written at `since` or later, oldest first."""
        found = []
        for row in self._db.query(_JUDGED, since):
            time_us, speedup, tier = row["measured_us"], None, row["tier"]
            if time_us is not None:
                speedup = min((one[0] for one in json.loads(row["speedups"]).values()), default=None)
            elif row["estimated_us"] is not None:
                time_us, tier = row["estimated_us"], Tier.ESTIMATED.value
                speedup = row["eager_us"] / time_us
            found.append(Judged(row["id"], row["subject"], row["created"], row["verdict"], tier, time_us, speedup))
        return found

    def candidates(self, since: float = 0.0) -> list[Written]:
        """Every candidate that was written at `since` or later, oldest first."""
        return [Written(*row) for row in self._db.query(_CANDIDATES, since)]

    def reviewed(self) -> set[str]:
        """Names of what was reviewed."""
        return {str(row["subject"]) for row in self._db.query("SELECT subject FROM records WHERE kind = 'review'")}

    def calls_between(self, begin: float, end: float, words: Sequence[str]) -> list[dict[str, Any]]:
        """Model calls that were finished in a stretch of time and whose purpose has one of `words`, oldest first."""
        found = [
            (row["key"], row["json"])
            for row in self._db.query("SELECT key, json FROM calls WHERE created BETWEEN ? AND ? ORDER BY created", begin, end)
            if any(word in row["json"] for word in words)
        ]
        calls = [{"key": key, **json.loads(text)} for key, text in found]
        return [call for call in calls if not set(words).isdisjoint(re.split(r"[\s,/]+", str(call["purpose"])))]

    def last_about(self, candidate: str) -> float:
        """When the last record about a candidate was written, seconds since the epoch; 0 where there is none."""
        kinds = "('evaluation', 'review', 'candidate')"
        about = f"SELECT COALESCE(MAX(created), 0.0) AS last FROM records WHERE kind IN {kinds} AND (subject = ? OR id = ?)"  # noqa: S608 - fixed text
        return float(self._db.query(about, candidate, candidate)[0]["last"])

    def call_keys(self) -> set[str]:
        """Keys of the finished model calls."""
        return {str(row["key"]) for row in self._db.query("SELECT key FROM calls")}

    def last_calls(self, most: int) -> list[dict[str, Any]]:
        """The last model calls, oldest first."""
        found = self._db.query("SELECT key, json FROM calls ORDER BY created DESC LIMIT ?", most)
        return [{"key": row["key"], **json.loads(row["json"])} for row in reversed(found)]

    def last_spans(self, most: int) -> list[dict[str, Any]]:
        """The last executions of nodes, in order of start, without what they were given and gave."""
        fields = "SELECT node, subject, started, ended, ended - started AS seconds, error FROM spans ORDER BY id DESC LIMIT ?"
        return [dict(row) for row in reversed(self._db.query(fields, most))]

    def counts(self) -> tuple[int, int]:
        """How many executions of nodes and how many model calls there are."""
        found = self._db.query("SELECT (SELECT COUNT(*) FROM spans) AS spans, (SELECT COUNT(*) FROM calls) AS calls")[0]
        return found["spans"], found["calls"]

    def paid(self) -> list[tuple[float, float]]:
        """When each model call was finished, and its price in US dollars, 0 where none is known; oldest first."""
        return [(created, usd) for created, usd in self._db.query(_CALLS)]
