"""The replay buffer: every outcome in the log, and what each strategy was worth to the plans it was shown to."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence

from knowledge.learning.learn import evidence_of
from knowledge.log.event_log import EventKind, EventLog
from knowledge.records import Changes, Outcome, changes_of
from tools.records import Record, Tier, Verdict


class Experience(Record):
    """One outcome with what learning from it did."""

    seq: int
    at: str
    outcome: Outcome
    changed: tuple[str, ...]
    """Strategies it was credited to."""
    ignored: tuple[str, ...] = ()
    """Strategies that were shown and not cited."""

    @property
    def gain(self) -> float | None:
        """Parent time over child time of what passed; None where there is none that can be used."""
        gain = self.outcome.gain
        return gain if self.outcome.verdict is Verdict.PASS and gain is not None and 0 < gain < float("inf") else None

    @property
    def estimated(self) -> bool:
        """Whether nothing was timed."""
        return self.outcome.tier == Tier.ESTIMATED


class Worth(Record):
    """What one strategy was worth so far."""

    recalled: int
    """Recalls that brought it up."""
    cited: int
    """Plans that rested on it."""
    ignored: int
    """Plans that had it before them and did not."""
    cited_gain: float | None
    """Median gain of the plans that cited it and passed; measured ones where there are any."""
    ignored_gain: float | None
    """The same of the plans that ignored it."""
    basis: str
    """`measured`, `estimated` or `none`: of `cited_gain`."""
    failures: dict[str, int]
    """Verdicts of the plans that cited it and did not pass."""


def experiences(log: EventLog, after: int = 0) -> list[Experience]:
    """Read the replay buffer, oldest first."""
    return [
        Experience(
            seq=event.seq,
            at=event.at,
            outcome=Outcome.model_validate(event.body["outcome"]),
            changed=tuple(event.body["changed"]),
            ignored=tuple(event.body.get("ignored", ())),
        )
        for event in log.read(after=after, kinds=(EventKind.OUTCOME,))
    ]


def worth_of(names: Collection[str], seen: Sequence[Experience], recalls: Counter[str]) -> Worth:
    """Sum up what came of the plans that cited a strategy, by any of its names, and of those that ignored it."""
    cited = [one for one in seen if not set(names).isdisjoint(one.outcome.cited)]
    ignored = [one for one in seen if not set(names).isdisjoint(one.ignored)]
    mine, theirs = _changes(cited), _changes(ignored)
    return Worth(
        recalled=sum(recalls[name] for name in names),
        cited=len(cited),
        ignored=len(ignored),
        cited_gain=mine.median,
        ignored_gain=theirs.median,
        basis=mine.basis,
        failures=mine.failures,
    )


def count_recalls(log: EventLog) -> Counter[str]:
    """Count how often each strategy was brought up."""
    return Counter(one["id"] for event in log.read(kinds=(EventKind.RECALL,)) for one in event.body["recalled"])


def by_strategy(seen: Sequence[Experience], aliases: Mapping[str, str]) -> dict[str, list[Experience]]:
    """Group outcomes by the strategies they were credited to, under the names these have here."""
    found: dict[str, list[Experience]] = defaultdict(list)
    for one in seen:
        for strategy in one.changed:
            found[aliases.get(strategy, strategy)].append(one)
    return found


def _changes(seen: Sequence[Experience]) -> Changes:
    return changes_of([evidence_of(one.outcome, cited=True).trial for one in seen])
