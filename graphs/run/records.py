"""The records that only a run writes: what was recalled for a parent, what a tuning tried, and what the run delivers."""

from __future__ import annotations

from pydantic import Field

from knowledge.records import Recalled
from tools.records import Record, Verdict

OTHER_BASELINES = "other_baselines"
"""Kind of record by which a store keeps the reference's times under other policies' flags, by policy."""


class Recall(Record):
    """What memory brought up for one parent in one round; its name in the store is `<round>/<parent>`."""

    recalled: tuple[Recalled, ...]


LEARNT = "learnt"
"""Kind of record by which a store keeps what memory made of a plan's outcome, by the plan's id."""


class Learnt(Record):
    """What memory made of one plan's outcome."""

    strategies: tuple[str, ...]
    """Ids of the strategies that were made or changed."""


class Considered(Record):
    """What came of a search method's wish, in words; its name in the store is the wish's."""

    said: tuple[str, ...]


class CutOff(Record):
    """An evaluation that the end of the wall time cut off; its name in the store is the job's key. Nothing is known of the candidate."""

    what: str
    """One sentence."""


class Delivery(Record):
    """How a run ended: what the user gets, and why."""

    candidate: str
    """Candidate id, or ROOT for "keep the reference"."""
    evaluation: str
    """Key of the confirming evaluation; empty for ROOT."""
    reason: str
    """One sentence."""
    ended: str
    """Why the search ended."""
    unconfirmed: str = ""
    """Id of the best candidate that passed the search and whose confirmation could not be judged; never delivered. Empty: none."""
    unjudged: str = ""
    """Why no candidate could be judged; empty where one was."""


class Trial(Record):
    """One point that was tried."""

    candidate: str
    """Candidate id; empty where the point could not be written, or not be judged in time."""
    point: str
    """Parameters by region, JSON."""
    predicted_us: float
    """By the cost model before anything ran."""
    verdict: Verdict | None = None
    time_us: float | None = None
    """Measured or estimated, as its evaluation's tier says."""


class Tuning(Record):
    """One action `tune` with everything it tried; kept under its plan, and rewritten after each wave."""

    plan: str
    structure: str
    """What of the schedule it leaves as it is; the same structure is not tuned twice in a run."""
    allowed: int = Field(ge=0)
    """Trials, fixed when it began: at most half of the evaluations then left."""
    known: tuple[str, ...]
    """Points that earlier runs had found, tried first."""
    points: int
    """Points that were ranked by the cost model."""
    trials: tuple[Trial, ...] = ()
    best: str = ""
    """Candidate id of the fastest right trial; empty where there is none."""
