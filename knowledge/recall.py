"""Recall: typed filters, then rank by expected gain under uncertainty, by how closely an entry applies, and by diversity.

The score of an entry is `relevance * index`:

* index = μ + Z·σ/√(N₀ + W), the upper quantile of the posterior of its mean log gain: Bayes-UCB (Kaufmann, Cappé and
  Garivier, AISTATS 2012) for normal rewards of known spread. μ = (N₀·m₀ + Σ wᵢ·rᵢ)/(N₀ + W) and W = Σ wᵢ. A reward r is
  the natural log of the gain that the search kept, 0 for a step that was rolled back (as in KernelBand,
  arXiv 2511.18868: a relative gain, failures 0 but counted). The prior counts as N₀ trials of mean m₀, the log of the
  gain its source predicts, or that of `UNKNOWN_GAIN`.
* wᵢ is 1 for a trial measured on the same hardware generation, times `OTHER_GENERATION` for another, times
  `ESTIMATED` where nothing was timed, times what age has left of it (`knowledge.ageing`).
* relevance = family · bottleneck · generation · shapes · policy · (1 + similarity)/2: how far the typed fields agree, and
  the cosine between the words of the situation and those of the entry. That of a warning fades with its age.

Places are then given one by one: each entry of a kind that has a place already counts `SAME_KIND` times less, and what would
exceed the budget of tokens is passed over.

The constants below are choices of ours, not measurements; `benchmarks/` is where they are to be judged. The same
store, situation, limit and day give the same answer: ties go by id.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from knowledge.ageing import FORGOTTEN, Moment
from knowledge.entry import Entry, Evidence
from knowledge.index import Hit
from knowledge.records import Recalled, Situation
from tools.records import Tier

PRIOR_TRIALS = 1.0
"""N₀: a prediction weighs as much as one trial."""
UNKNOWN_GAIN = 1.15
"""Gain expected of an entry whose source gives no figure."""
SPREAD = 0.35
"""σ: standard deviation of the log gain of one trial; a factor of about 1.4."""
QUANTILE = 1.0
"""Z: how many posterior standard deviations the doubt is worth."""
OTHER_GENERATION = 0.5
"""Weight of a trial on another hardware generation, and relevance of an entry learnt on one."""
ESTIMATED = 0.3
"""Weight of a trial whose gain was estimated."""
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
    reasons: tuple[str, ...]
    """How far it applies."""
    warning: bool
    expected: tuple[float, float]
    """Posterior mean of its log gain, and the standard deviation."""

    def why(self, moment: Moment) -> str:
        """Say why it comes up; put together for what is shown only."""
        said = [*self.reasons, _record(self.entry), *_aged(self.entry, moment)]
        if not self.warning:
            mean, deviation = self.expected
            said.append(f"expects {math.exp(mean):.2f}x (up to {math.exp(mean + deviation):.2f}x)")
        return ", ".join(said)


def rank(
    entries: Mapping[str, Entry], hits: Sequence[Hit], situation: Situation, limit: int, moment: Moment, tokens: int = 0
) -> tuple[Recalled, ...]:
    """Choose at most `limit` of the entries that were hit, in about `tokens` tokens (0: no limit).

    Advice comes first by falling score, then warnings by falling relevance.
    """
    able = [hit for hit in hits if _may_apply(entries.get(hit.id), situation)]
    ranked = [_ranked(entries[hit.id], hit.similarity, situation, moment) for hit in able]
    warnings = _distinct([r for r in ranked if r.warning and moment.fade(r.entry) >= FORGOTTEN])[: max(1, limit // WARNING_SHARE)]
    advice = _diverse(_distinct([r for r in ranked if not r.warning]), limit - len(warnings))
    shown = [
        Recalled(strategy=r.entry.strategy, score=round(r.score, 6), why=r.why(moment), warning=r.warning)
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
    left, chosen = list(ranked), list[Ranked]()
    kinds: Counter[str] = Counter()
    while left and len(chosen) < places:
        best = max(left, key=lambda r: (r.score * SAME_KIND ** kinds[r.entry.written.kind] if r.score > 0 else r.score, r.score))
        left.remove(best)
        chosen.append(best)
        kinds[best.entry.written.kind] += 1
    return sorted(chosen, key=lambda r: (-r.score, r.entry.id))


def expected_log_gain(entry: Entry, situation: Situation, moment: Moment) -> tuple[float, float]:
    """Return the posterior mean of an entry's log gain, and its standard deviation."""
    # what was learnt here has no prediction beyond its own trials
    predicted = entry.current.expected_gain or UNKNOWN_GAIN
    weighted = [(_weight(e, situation, moment), e.realised_log_gain) for e in entry.evidence]
    total = PRIOR_TRIALS + sum(w for w, _ in weighted)
    mean = (PRIOR_TRIALS * math.log(predicted) + sum(w * r for w, r in weighted)) / total
    return mean, SPREAD / math.sqrt(total)


def _ranked(entry: Entry, similarity: float, situation: Situation, moment: Moment) -> Ranked:
    relevance, reasons = _relevance(entry, similarity, situation)
    mean, deviation = expected_log_gain(entry, situation, moment)
    warning = entry.warns
    # warnings score at most 0, so that falling scores keep them after the advice
    score = relevance * moment.fade(entry) - 1.0 if warning else relevance * (mean + QUANTILE * deviation)
    return Ranked(entry, score, tuple(reasons), warning, (mean, deviation))


def _aged(entry: Entry, moment: Moment) -> list[str]:
    """Say what age and other versions have taken, where that is more than a twentieth."""
    said = []
    left = sum(map(moment.weight, entry.evidence))
    if entry.evidence and left < 0.95 * len(entry.evidence):
        stale = sum(map(moment.is_stale, entry.evidence))
        why = f", {stale} with other versions" if stale else ""
        said.append(f"its {len(entry.evidence)} trials weigh {left:.1f} by age{why}")
    if entry.warns and moment.fade(entry) < 0.95:
        said.append(f"the warning has faded to {100 * moment.fade(entry):.0f} %")
    return said


def _relevance(entry: Entry, similarity: float, situation: Situation) -> tuple[float, list[str]]:
    own = entry.written.situation
    shared = [i for i, family in enumerate(situation.families) if family in own.families]
    if shared:
        family, reasons = FAMILY_BY_PLACE[min(shared[0], len(FAMILY_BY_PLACE) - 1)], [f"family {situation.families[shared[0]]}"]
    else:
        family, reasons = FAMILY_BY_PLACE[-1], ["any family"]
    if own.bottleneck is None or situation.bottleneck is None:
        limit, said = ANY_BOTTLENECK, "any bottleneck" if own.bottleneck is None else f"bottleneck {own.bottleneck}"
    elif own.bottleneck is situation.bottleneck:
        limit, said = 1.0, f"bottleneck {own.bottleneck}"
    else:
        limit, said = OTHER_BOTTLENECK, f"another bottleneck ({own.bottleneck})"
    reasons.append(said)
    generation = 1.0
    if _foreign(entry, situation):
        generation = OTHER_GENERATION
        reasons.append(f"learnt on {own.generation}")
    narrower = 1.0
    if own.shapes and situation.shapes and own.shapes != situation.shapes:
        narrower *= OTHER_SHAPES
        reasons.append(f"learnt on {own.shapes} rows")
    if own.policy and situation.policy and own.policy != situation.policy:
        narrower *= OTHER_POLICY
        reasons.append(f"learnt under policy {own.policy}")
    if own.graph and own.graph == situation.graph:
        reasons.append("same operator graph")
    reasons.append(f"similarity {similarity:.2f}")
    return family * limit * generation * narrower * (1.0 + max(-1.0, min(1.0, similarity))) / 2.0, reasons


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


def _weight(evidence: Evidence, situation: Situation, moment: Moment) -> float:
    weight = moment.weight(evidence) * (ESTIMATED if evidence.trial.tier == Tier.ESTIMATED else 1.0)
    known = evidence.generation is not None and situation.generation is not None
    return weight * (OTHER_GENERATION if known and evidence.generation != situation.generation else 1.0)


def _distinct(ranked: list[Ranked]) -> list[Ranked]:
    """Keep one of each kind and parameters, best first; of equals the tried one, for it stands on evidence.

    Advice without parameters is told apart by its words only, so a few of each kind are kept.
    """
    kept: list[Ranked] = []
    taken: Counter[str] = Counter()
    for candidate in sorted(ranked, key=lambda r: (not r.entry.evidence, -r.score, r.entry.id)):
        written = candidate.entry.written
        action = f"{written.kind} {json.dumps(written.parameters, sort_keys=True)}"
        if taken[action] < (1 if written.parameters else OPEN_PER_KIND):
            taken[action] += 1
            kept.append(candidate)
    return sorted(kept, key=lambda r: (-r.score, r.entry.id))
