"""Recall: typed filters, then rank by expected gain under uncertainty, by how closely an entry applies, and by diversity.

The score of an entry is `relevance * index`:

* index = μ + Z·σ/√(N₀ + W), the upper quantile of the posterior of its mean log gain: Bayes-UCB (Kaufmann, Cappé and
  Garivier, AISTATS 2012) for normal rewards of known spread. μ = (N₀·m₀ + Σ wᵢ·rᵢ)/(N₀ + W) and W = Σ wᵢ. A reward r is
  the natural log of the gain that the search kept, 0 for a step that was rolled back (as in KernelBand,
  arXiv 2511.18868: a relative gain, failures 0 but counted). The prior counts as N₀ trials of mean m₀, the log of the
  gain its source predicts, or that of `UNKNOWN_GAIN`.
* wᵢ is 1 for a trial measured today on this device with the present versions; what another device or generation, an
  estimate (`knowledge.recall.weighing`), age and other versions (`knowledge.recall.ageing`) take of it is said in words.
* relevance = family · bottleneck · generation · shapes · policy · (1 + similarity)/2: how far the typed fields agree, and
  the cosine between the words of the situation and those of the entry. That of a warning fades with its age.

Places are then given one by one: each entry of a kind that has a place already counts `SAME_KIND` times less, and what would
exceed the budget of tokens is passed over.

The constants below are choices of ours, not measurements; `benchmarks/` is where they are to be judged. The same
store, situation, limit and day give the same answer: ties go by id.
"""

from __future__ import annotations

import math
from collections import Counter, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from knowledge.log.entry import Entry
from knowledge.recall.ageing import FORGOTTEN, Moment
from knowledge.recall.expectation import foretold
from knowledge.recall.standing import Standing, standing_of
from knowledge.recall.weighing import OTHER_GENERATION, WORTH_SAYING, Place, lost
from knowledge.records import Recalled, Situation
from knowledge.vectors.index import Hit

QUANTILE = 1.0
"""Z: how many posterior standard deviations the doubt is worth."""
FAMILY_BY_PLACE = (1.0, 0.75, 0.6)
"""Relevance by the place of the shared family in the situation, heaviest first; the last value for all further places."""
ANY_BOTTLENECK = 0.9
"""Relevance of an entry that names no bottleneck."""
OTHER_BOTTLENECK = 0.4
"""Relevance of an entry for another bottleneck; brought up only where too few match."""
OTHER_SHAPES = 0.9
"""Relevance of an entry learnt on another class of shapes."""
OTHER_POLICY = 0.7
"""Relevance of an entry learnt under another precision policy: it may have used what is not allowed here."""
SAME_KIND = 0.95
"""What a place taken by one kind of action leaves of the score of the next of that kind, while places are given."""
CHARACTERS = 4
"""Characters a token, for the budget: a rule of thumb for English, not a tokenizer."""
WARNING_SHARE = 3
"""At most one in so many of the places goes to warnings."""

OPEN_PER_KIND = 2
"""Entries of one kind that may be shown where they name no parameters."""


@dataclass(frozen=True)
class Ranked:
    """An entry with the parts of its score."""

    entry: Entry
    score: float
    similarity: float
    standing: Standing

    @property
    def warning(self) -> bool:
        """Whether it speaks against something."""
        return self.standing.warns

    def why(self, situation: Situation, moment: Moment) -> str:
        """Say why it comes up; put together for what is shown only."""
        said = [*_reasons(self.entry, self.similarity, situation), _record(self.entry), *_weakened(self.entry, Place.of(situation), moment)]
        if not self.warning:
            mean, deviation = self.standing.mean, self.standing.deviation
            said.append(f"expects {math.exp(mean):.2f}x (up to {math.exp(mean + deviation):.2f}x)")
        return ", ".join(said)


def rank(
    entries: Mapping[str, Entry], hits: Sequence[Hit], situation: Situation, limit: int, moment: Moment, tokens: int = 0
) -> tuple[Recalled, ...]:
    """Choose at most `limit` of the entries that were hit, in about `tokens` tokens (0: no limit).

    Advice comes first by falling score, then warnings by falling relevance.
    """
    able = [hit for hit in hits if _may_apply(entries.get(hit.id), situation)]
    place = Place.of(situation)
    ranked = [_ranked(entries[hit.id], hit.similarity, situation, place, moment) for hit in able]
    warnings = _distinct([r for r in ranked if r.warning and r.standing.fade >= FORGOTTEN])[: max(1, limit // WARNING_SHARE)]
    advice = _diverse(_distinct([r for r in ranked if not r.warning]), limit - len(warnings))
    shown = [
        Recalled(
            strategy=r.entry.strategy,
            score=round(r.score, 6),
            why=r.why(situation, moment),
            warning=r.warning,
            foretold=foretold(r.entry, place, moment),
        )
        for r in (advice + warnings)[:limit]
    ]
    return _within(shown, tokens) if tokens else tuple(shown)


def tokens_of(recalled: Recalled) -> int:
    """About how many tokens an entry takes in a prompt."""
    return -(-len(f"{recalled.strategy.title}{recalled.strategy.lesson}{recalled.why}{recalled.strategy.parameters}") // CHARACTERS)


def _within(shown: Sequence[Recalled], tokens: int) -> tuple[Recalled, ...]:
    """Pass over what does not fit any more; the first always does."""
    kept: list[Recalled] = []
    for one in shown:
        if not kept or sum(map(tokens_of, kept)) + tokens_of(one) <= tokens:
            kept.append(one)
    return tuple(kept)


def _diverse(ranked: list[Ranked], places: int) -> list[Ranked]:
    """Fill the places one by one, each with the best that is left when kinds already shown count less."""
    # of one kind the best comes first, so only the first of each kind need be looked at
    left: dict[str, deque[Ranked]] = {}
    for one in ranked:
        left.setdefault(one.entry.written.kind, deque()).append(one)
    chosen: list[Ranked] = []
    kinds: Counter[str] = Counter()

    def weighed(kind: str) -> tuple[float, float]:
        score = left[kind][0].score
        return score * SAME_KIND ** kinds[kind] if score > 0 else score, score

    while left and len(chosen) < places:
        best = min(left, key=lambda kind: (*(-value for value in weighed(kind)), left[kind][0].entry.id))
        chosen.append(left[best].popleft())
        kinds[best] += 1
        if not left[best]:
            del left[best]
    return sorted(chosen, key=lambda r: (-r.score, r.entry.id))


def _ranked(entry: Entry, similarity: float, situation: Situation, place: Place, moment: Moment) -> Ranked:
    relevance = _relevance(entry, similarity, situation)
    standing = standing_of(entry, place, moment)
    # warnings score at most 0, so that falling scores keep them after the advice
    score = relevance * standing.fade - 1.0 if standing.warns else relevance * (standing.mean + QUANTILE * standing.deviation)
    return Ranked(entry, score, similarity, standing)


def _weakened(entry: Entry, place: Place, moment: Moment) -> list[str]:
    """Say what its evidence, and its warning, have lost."""
    taken = lost(entry.evidence, place, moment)
    said = [taken] if taken else []
    if entry.warns and moment.fade(entry) < WORTH_SAYING:
        said.append(f"the warning has faded to {100 * moment.fade(entry):.0f} %")
    return said


def _relevance(entry: Entry, similarity: float, situation: Situation) -> float:
    """How far an entry applies, as a factor."""
    own = entry.written.situation
    factor = FAMILY_BY_PLACE[min(_shared(entry, situation), len(FAMILY_BY_PLACE) - 1)]
    if own.bottleneck is None or situation.bottleneck is None:
        factor *= ANY_BOTTLENECK
    elif own.bottleneck is not situation.bottleneck:
        factor *= OTHER_BOTTLENECK
    if _foreign(entry, situation):
        factor *= OTHER_GENERATION
    if own.shapes and situation.shapes and own.shapes != situation.shapes:
        factor *= OTHER_SHAPES
    if _stricter(own.policy, situation.policy):
        factor *= OTHER_POLICY
    return factor * (1.0 + max(-1.0, min(1.0, similarity))) / 2.0


def _reasons(entry: Entry, similarity: float, situation: Situation) -> list[str]:
    """The same in words."""
    own = entry.written.situation
    place = _shared(entry, situation)
    said = [f"family {situation.families[place]}" if place < len(situation.families) else "any family"]
    if own.bottleneck is None:
        said.append("any bottleneck")
    else:
        other = situation.bottleneck is not None and own.bottleneck is not situation.bottleneck
        said.append(f"another bottleneck ({own.bottleneck})" if other else f"bottleneck {own.bottleneck}")
    if _foreign(entry, situation):
        said.append(f"learnt on {own.generation}")
    if own.shapes and situation.shapes and own.shapes != situation.shapes:
        said.append(f"learnt on {own.shapes} rows")
    if _stricter(own.policy, situation.policy):
        said.append(f"learnt under policy {own.policy}")
    if own.graph and own.graph == situation.graph:
        said.append("same operator graph")
    return [*said, f"similarity {similarity:.2f}"]


def _stricter(own: str, situation: str) -> bool:
    """Whether what was learnt under policy `own` may use what the situation's forbids; `exact` uses nothing that `default` forbids."""
    return bool(own and situation) and own != situation and (own, situation) != ("exact", "default")


def _shared(entry: Entry, situation: Situation) -> int:
    """Place of the heaviest shared family in the situation; behind the last where none is shared."""
    own = entry.written.situation.families
    return next((place for place, family in enumerate(situation.families) if family in own), len(situation.families))


def _record(entry: Entry) -> str:
    """What its trials say, in words."""
    tally = entry.tally()
    if not tally.tries:
        return f"{entry.state}, not tried here yet"
    tier = "measured" if tally.measured else ("estimated" if tally.tries > tally.failed else "none passed")
    median = f", median {tally.median_gain:.2f}x" if tally.median_gain else ""
    failed = f", {tally.failed} failed ({_verdicts(entry)})" if tally.failed else ""
    return f"{entry.state}, {tally.gained} of {tally.tries} tries gained ({tier}{median}{failed})"


def _verdicts(entry: Entry) -> str:
    return "/".join(sorted({e.trial.verdict for e in entry.evidence if e.trial.verdict != "PASS"}))


def _may_apply(entry: Entry | None, situation: Situation) -> bool:
    """Leave out what is retired, and what was curated for another hardware generation."""
    if entry is None or entry.retired is not None:
        return False
    return not (_foreign(entry, situation) and entry.origin == "seed")


def _foreign(entry: Entry, situation: Situation) -> bool:
    own = entry.written.situation.generation
    return own is not None and situation.generation is not None and own != situation.generation


def _distinct(ranked: list[Ranked]) -> list[Ranked]:
    """Keep one of each kind and parameters, best first; of equals the tried one, for it stands on evidence.

    Advice without parameters is told apart by its words only, so a few of each kind are kept.
    """
    kept: list[Ranked] = []
    taken: Counter[str] = Counter()
    for candidate in sorted(ranked, key=lambda r: (not r.entry.evidence, -r.score, r.entry.id)):
        action = candidate.standing.action
        if taken[action] < (1 if candidate.entry.written.parameters else OPEN_PER_KIND):
            taken[action] += 1
            kept.append(candidate)
    return sorted(kept, key=lambda r: (-r.score, r.entry.id))
