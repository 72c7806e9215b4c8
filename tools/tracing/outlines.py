"""A run in outline: the few figures of each evaluation and call that lists and plots need, read without the records around them.

A record of an evaluation holds every single time; of a run of thousands they are read in a tenth of a second here, and in seconds whole.
"""

from __future__ import annotations

import json
from typing import NamedTuple

from tools.records import Tier
from tools.tracing.database import Database

_JUDGED = """
SELECT id, subject, created, json ->> 'verdict' AS verdict, json ->> '$.timing.tier' AS tier,
       json ->> '$.timing.candidate.median_us' AS measured_us, json -> '$.timing.speedups' AS speedups,
       json ->> '$.estimate.candidate_us' AS estimated_us, json ->> '$.estimate.eager_us' AS eager_us
FROM records WHERE kind = 'evaluation' AND created >= ? ORDER BY created, id
"""
_CANDIDATES = "SELECT id, subject AS parent, created FROM records WHERE kind = 'candidate' AND created >= ? ORDER BY created, id"
_CALLS = "SELECT created, COALESCE(json ->> 'cost_usd', 0.0) AS usd FROM calls ORDER BY created"


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

    def paid(self) -> list[tuple[float, float]]:
        """When each model call was finished, and its price in US dollars, 0 where none is known; oldest first."""
        return [(row["created"], row["usd"]) for row in self._db.query(_CALLS)]
