"""How much evidence weighs as it ages: by half-lives, shorter where the versions it was measured with are gone.

Half-lives are choices of ours, not measurements. Ages are days of the calendar, so that a day's recalls agree with one another.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime
from functools import cached_property

from knowledge.entry import Entry, Evidence

HALF_LIFE_DAYS = 365.0
"""Of evidence measured with the present versions: the hardware under it does not change."""
STALE_HALF_LIFE_DAYS = 60.0
"""Of evidence measured with other versions of torch or triton: another compiler may have other ideas."""
CONTRADICTED_HALF_LIFE_DAYS = 90.0
"""Of a warning, from its last try on: what once failed gets another chance."""
FORGOTTEN = 0.1
"""A warning that has faded below this is brought up no more."""

_TOLD_APART = ("torch", "triton")

Versions = Mapping[str, str]


@dataclass(frozen=True)
class Moment:
    """When a recall happens, and the newest versions seen on each device."""

    now: datetime
    present: Mapping[str, Versions]
    edition: int = 0
    """Changes whenever `present` does."""

    @cached_property
    def day(self) -> date:
        """The day it happens on, UTC: moments of one day and edition weigh everything alike."""
        return self.now.astimezone(UTC).date()

    def weight(self, evidence: Evidence) -> float:
        """Share of its first weight that evidence still has."""
        half_life = STALE_HALF_LIFE_DAYS if self.is_stale(evidence) else HALF_LIFE_DAYS
        return float(0.5 ** (self.days_since(evidence.at) / half_life))

    def is_stale(self, evidence: Evidence) -> bool:
        """Whether torch or triton changed on its device since, in more than a patch release."""
        mine, present = evidence.trial.versions, self.present.get(evidence.trial.device, {})
        return any(name in mine and name in present and minor(mine[name]) != minor(present[name]) for name in _TOLD_APART)

    def fade(self, entry: Entry) -> float:
        """Share of its first relevance that a warning still has."""
        last = max((e.at for e in entry.evidence), default="")
        return float(0.5 ** (self.days_since(last) / CONTRADICTED_HALF_LIFE_DAYS))

    def days_since(self, at: str) -> int:
        """Days of the calendar, UTC, since `at`; 0 where that is not known or lies ahead, as another machine's clock may have it."""
        if not at:
            return 0
        then = datetime.fromisoformat(at)
        then = then if then.tzinfo else then.replace(tzinfo=UTC)
        return max(0, (self.day - then.astimezone(UTC).date()).days)


def minor(version: str) -> str:
    """`2.11` of `2.11.0+cu128`."""
    return ".".join(version.partition("+")[0].split(".")[:2])
