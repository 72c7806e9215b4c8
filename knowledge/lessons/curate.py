"""Curating: near-duplicates are merged and what has lost all weight is retired, each with a logged reason."""

from __future__ import annotations

import json
import math
from collections import defaultdict

from knowledge.log.entry import Entry
from knowledge.log.event_log import EventKind, EventLog
from knowledge.log.fold import Fold
from knowledge.recall.ageing import FORGOTTEN, Moment
from knowledge.recall.standing import SPREAD
from knowledge.vectors.index import StrategyIndex
from tools.records import Record

ALIKE = 0.95
"""Cosine from which two entries of one action and equal typed fields are near-duplicates."""


class Curated(Record):
    """One entry that was, or would be, taken out of recall."""

    id: str
    title: str
    into: str = ""
    """Entry that takes over its evidence, where it is merged."""
    reason: str


def duplicates(fold: Fold, index: StrategyIndex, alike: float = ALIKE) -> list[Curated]:
    """Find learnt entries that say the same as an older one: equal action and typed fields, like words, agreeing records."""
    groups: dict[str, list[Entry]] = defaultdict(list)
    for entry in fold.entries.values():
        if entry.retired is None and entry.origin != "seed":
            groups[_group(entry)].append(entry)
    found: list[Curated] = []
    for group in groups.values():
        if len(group) > 1:
            found += _within(fold, index, group, alike)
    return found


def faded(fold: Fold, moment: Moment) -> list[Curated]:
    """Find learnt entries whose evidence has aged away, and warnings that have faded."""
    found = []
    for entry in fold.entries.values():
        if entry.retired is not None or not entry.evidence or (entry.origin == "seed" and not entry.warns):
            continue
        weight, fade = sum(map(moment.weight, entry.evidence)), moment.fade(entry)
        if entry.warns and fade < FORGOTTEN:
            reason = f"the warning has faded to {100 * fade:.0f} % since its last try"
        elif weight < FORGOTTEN and entry.origin != "seed":
            reason = f"its {len(entry.evidence)} trials weigh {weight:.2f} by age and other versions"
        else:
            continue
        found.append(Curated(id=entry.id, title=entry.written.title, reason=reason))
    return found


def carry_out(log: EventLog, fold: Fold, found: list[Curated]) -> tuple[str, ...]:
    """Log merges and retirements in one transaction; return the ids of what was taken out."""
    done = []
    with log.writing() as writer:
        fold.follow(log)
        for one in found:
            entry = fold.entries.get(one.id)
            if entry is None or entry.retired is not None:
                continue
            kind, verb = (EventKind.REPLACE, "merge") if one.into else (EventKind.RETIRE, "prune")
            body = {"reason": one.reason, **({"by": one.into, "merge": True} if one.into else {})}
            if writer.add(kind, f"{verb}:{one.id}:{one.into}:{fold.seen}", one.id, body):
                done.append(one.id)
    fold.follow(log)
    return tuple(done)


def _group(entry: Entry) -> str:
    own = entry.written.situation
    parts = (own.backend, sorted(own.families), own.bottleneck, own.generation, sorted(own.dtypes), own.policy, entry.written.kind)
    return json.dumps([*parts, entry.written.region, entry.written.parameters], sort_keys=True)


def _within(fold: Fold, index: StrategyIndex, group: list[Entry], alike: float) -> list[Curated]:
    """Merge each entry into the oldest one it agrees with, which itself stays."""
    cosines = index.alike(fold, [entry.id for entry in group])
    found, gone = [], set[int]()
    for young in range(1, len(group)):
        for old in range(young):
            similarity = float(cosines[old][young])
            if old not in gone and similarity >= alike and _agree(group[old], group[young]):
                gone.add(young)
                reason = f"near-duplicate of {group[old].id}: same action and typed fields, similarity {similarity:.2f}, records agree"
                found.append(Curated(id=group[young].id, title=group[young].written.title, into=group[old].id, reason=reason))
                break
    return found


def _agree(one: Entry, other: Entry) -> bool:
    """Whether both advise or both warn, with gains within one trial's spread of one another."""
    mine, theirs = one.tally(), other.tally()
    if one.warns != other.warns or (mine.median_gain is None) != (theirs.median_gain is None):
        return False
    if mine.median_gain is None or theirs.median_gain is None:
        return True
    return mine.measured == theirs.measured and abs(math.log(mine.median_gain / theirs.median_gain)) <= SPREAD
