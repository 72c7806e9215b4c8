"""How much evidence weighs as it ages: by half-lives, at once less and sooner spent where the versions it was measured with are gone.

Half-lives are choices of ours, not measurements; the first is a setting, and the others keep their share of it. Ages are days of the
calendar, so that a day's recalls agree with one another.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime
from functools import cached_property

from knowledge.log.entry import Entry, Evidence

HALF_LIFE_DAYS = 365.0
"""Of evidence measured with the present versions: the hardware under it does not change."""
STALE_SHARE = 60.0 / 365.0
"""Half-life of evidence measured with other versions over that with the present ones: another compiler may have other ideas."""
WARNING_SHARE = 90.0 / 365.0
"""The same of a warning, from its last try on: what once failed gets another chance."""
OTHER_VERSIONS = 0.7
"""What other versions leave of the weight of evidence at once, however young it is."""
FORGOTTEN = 0.1
"""A warning that has faded below this is brought up no more; evidence below it foretells nothing."""

_TOLD_APART = {"torch": 2, "triton": 2, "driver": 1}
"""Parts of each version that tell releases apart: patches of a library and builds of a driver branch are taken for the same."""

Versions = Mapping[str, str]


@dataclass(frozen=True)
class Moment:
    """When a recall happens, and the newest versions seen on each device."""

    now: datetime
    present: Mapping[str, Versions]
    edition: int = 0
    """Changes whenever `present` does."""
    half_life: float = HALF_LIFE_DAYS
    """Days in which evidence measured with the present versions loses half of its weight; 0: age takes nothing."""

    @cached_property
    def day(self) -> date:
        """The day it happens on, UTC: moments of one day and edition weigh everything alike."""
        return self.now.astimezone(UTC).date()

    def weight(self, evidence: Evidence) -> float:
        """Share of its first weight that age and other versions have left of evidence."""
        stale = self.is_stale(evidence)
        left = self._left(evidence.at, STALE_SHARE if stale else 1.0)
        return left * OTHER_VERSIONS if stale else left

    def is_stale(self, evidence: Evidence) -> bool:
        """Whether torch, triton or the driver changed on its device since, by more than a patch release."""
        return bool(self.changed(evidence))

    def changed(self, evidence: Evidence) -> tuple[str, ...]:
        """Name what changed on its device since, as `triton 3.6 → 3.9`."""
        mine, present = evidence.trial.versions, self.present.get(evidence.trial.device, {})
        known = [name for name in _TOLD_APART if name in mine and name in present]
        pairs = [(name, release(name, mine[name]), release(name, present[name])) for name in known]
        return tuple(f"{name} {before} → {now}" for name, before, now in pairs if before != now)

    def fade(self, entry: Entry) -> float:
        """Share of its first relevance that a warning still has."""
        return self._left(max((e.at for e in entry.evidence), default=""), WARNING_SHARE)

    def days_since(self, at: str) -> int:
        """Days of the calendar, UTC, since `at`; 0 where that is not known or lies ahead, as another machine's clock may have it."""
        if not at:
            return 0
        then = datetime.fromisoformat(at)
        then = then if then.tzinfo else then.replace(tzinfo=UTC)
        return max(0, (self.day - then.astimezone(UTC).date()).days)

    def _left(self, at: str, share: float) -> float:
        return 0.5 ** (self.days_since(at) / (self.half_life * share)) if self.half_life else 1.0


def release(name: str, version: str) -> str:
    """`2.11` of torch `2.11.0+cu128`, `570` of driver `570.86.15`."""
    return ".".join(version.partition("+")[0].split(".")[: _TOLD_APART[name]])
