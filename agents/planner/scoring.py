"""Scoring one action: the prior against the bottleneck, recalled strategies, what was tried on this parent."""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import median

from agents.planner.ladder import ladder_place, magnitude
from agents.planner.protocol import Briefing, Tried
from agents.planner.room import most_gain
from agents.planner.scores import DIRECTIONS, SCORES, value_points
from agents.planner.similar import likeness, shared_closeness
from knowledge.records import Recalled, Strategy
from tools.cost.choice import CHOICE, MADE, chosen_number
from tools.records import Action, ActionKind, Tier, Verdict

STRATEGY_WEIGHT = 6.0
"""Points of a strategy with recall score 1. The score is relevance times expected log gain, so relevant advice of 2x brings about 4."""
WARNING_WEIGHT = 6.0
FAILED_WEIGHT = 4.0
"""Taken off for an equal action that failed or was refused."""
SLOWER_WEIGHT = 5.0
"""Taken off for an equal action that made the parent slower or changed nothing that could be told from noise."""
FASTER_WEIGHT = 1.0
"""Given for an equal action that gained: its neighbours are worth a look."""
INSPIRED_WEIGHT = 1.5
"""Given for a step that led to a faster candidate which the search method shows; half of it for a slower one's."""
MATE_WEIGHT = 3.0
"""The same for a step that led to a second parent."""
DIRECTION_WEIGHT = 0.9
"""Less than a step between kinds: it orders options of one kind and region only."""
UNPROVEN = 2.0
"""Taken off for an action that no coder has said it can do."""
BROAD = frozenset({ActionKind.ALGORITHM, ActionKind.LAUNCH, ActionKind.LAYOUT, ActionKind.PRECISION})
"""Kinds whose actions have little in common: advice of such a kind speaks for an action only where their parameters meet."""
UNMATCHED = 0.2
"""Likeness of advice and an action of one kind where nothing says that they mean the same."""
CITED = 0.5
"""From this likeness on a plan may say that it rests on the advice."""
EXPECTED_WEIGHT = 4.0
"""Points for each doubling that the cost model expects of a step; it orders steps of one kind, and lifts what it likes over the prior."""
MOST_DOUBLINGS = 1.5
"""The model's errors reach a factor of two, so what it promises or fears beyond this counts no more."""
NO_GAIN = 1.02
"""A gain below this is told to be none; the reviewer's interval decides acceptance, this only steers."""


@dataclass(frozen=True)
class Scored:
    """An action with its score and where it comes from."""

    action: Action
    score: float
    prior: float
    reasons: tuple[str, ...] = ()
    """One clause each, strongest first."""
    strategies: tuple[str, ...] = ()
    """Ids of the strategies that speak for it, strongest first."""
    predicted_gain: float | None = None
    """Of the strongest of those; None without one that has a figure."""
    proven: bool = True
    """Whether a coder listed it."""


def score_action(action: Action, briefing: Briefing, proven: bool = True) -> Scored:
    """Add up what speaks for and against one action."""
    bottleneck = briefing.profile.bottleneck
    prior = SCORES[bottleneck][action.kind] + sum(value_points(n, v, bottleneck) for n, v in action.parameters.items())
    if action.kind is ActionKind.PRECISION and not _has_tensor_cores(briefing):
        prior = 0.0
    direction = DIRECTION_WEIGHT * _direction(action, briefing)
    advice, cited, gain, praise = _advice(action, briefing)
    tried, lessons = _lessons(action, briefing.tried)
    shown, examples = _inspired(action, briefing)
    modelled, clause = _expected(action, briefing)
    total = prior + direction + advice + tried + shown + modelled - (0.0 if proven else UNPROVEN)
    return Scored(action, total, prior, (*clause, *praise, *lessons, *examples), cited, _possible(gain, briefing), proven)


def _expected(action: Action, briefing: Briefing) -> tuple[float, list[str]]:
    """Points and a clause that the cost model brings."""
    found = briefing.expected.get(action.id)
    if found is None:
        return 0.0, []
    doublings = math.log2(found.gain) if found.gain else 0.0
    return EXPECTED_WEIGHT * max(-MOST_DOUBLINGS, min(MOST_DOUBLINGS, doublings)), [found.words]


def _possible(gain: float | None, briefing: Briefing) -> float | None:
    """Cap what advice promises at what the roofline floor leaves."""
    most = most_gain(briefing.profile)
    return gain if gain is None or most is None else min(gain, most)


def _has_tensor_cores(briefing: Briefing) -> bool:
    """Lower precision pays by tensor cores or by fewer bytes; without the former on the sheet, only measured advice speaks for it."""
    return (briefing.sheet.tf32_tflops or briefing.sheet.fp16_tflops or 0.0) > briefing.sheet.fp32_tflops


def _direction(action: Action, briefing: Briefing) -> float:
    """Up to 1 for the option that lies where the bottleneck asks for among those that change the same parameters of the same region."""
    alike = [
        o for o in briefing.options if (o.kind, o.region, o.parameters.keys()) == (action.kind, action.region, action.parameters.keys())
    ]
    return ladder_place(
        magnitude(action.parameters),
        [magnitude(o.parameters) for o in alike],
        DIRECTIONS.get((briefing.profile.bottleneck, action.kind), 0),
    )


def _advice(action: Action, briefing: Briefing) -> tuple[float, tuple[str, ...], float | None, list[str]]:
    """Points, cited ids, predicted gain and clauses that recalled strategies bring."""
    total, found, clauses = 0.0, [], []
    for recalled in briefing.recalled:
        match = _match(action, recalled.strategy, briefing)
        points = _points(match, recalled)
        of_choice = chosen_number(action) and MADE in recalled.strategy.parameters
        counted = _points_of_choice(points, recalled) if of_choice else points
        total += counted
        if points > 0 and match >= CITED:
            found.append((points, recalled))
        elif counted < 0 and match >= CITED:
            clauses.append(f"a warning of strategy {recalled.strategy.id} ({recalled.strategy.title}) speaks against it")
    found.sort(key=lambda pair: (-pair[0], pair[1].strategy.id))
    praise = [f"strategy {r.strategy.id} ({r.strategy.title}) {_record(r.strategy)}" for _, r in found]
    gains = [gain for _, r in found if (gain := expected_gain(r)) is not None]
    return total, tuple(r.strategy.id for _, r in found), gains[0] if gains else None, praise + clauses


def _points_of_choice(points: float, recalled: Recalled) -> float:
    """Points for one of the model's choices from what another operator's came to.

    How much a choice gained, or lost, says how slow the reference was there: praise is for all choices alike, and only what failed warns.
    """
    if not recalled.warning:
        return _points(1.0, recalled)
    trials = recalled.strategy.trials
    return points if 2 * sum(trial.verdict is not Verdict.PASS for trial in trials) > len(trials) else 0.0


def _match(action: Action, strategy: Strategy, briefing: Briefing) -> float:
    """How far advice is about this action: its kind, and the values of the parameters both name."""
    if strategy.kind is not action.kind or CHOICE in strategy.parameters:
        # a choice's number means something else for every operator
        return 0.0
    if MADE in strategy.parameters or chosen_number(action):
        expected = briefing.expected.get(action.id)
        return 1.0 if expected and expected.made and strategy.parameters.get(MADE) == expected.made else UNMATCHED
    if strategy.parameters.keys() & action.parameters.keys():
        return shared_closeness(action.parameters, strategy.parameters)
    return UNMATCHED if strategy.parameters or action.kind in BROAD else 1.0


def _points(match: float, recalled: Recalled) -> float:
    if recalled.warning:
        # a warning's score is its relevance less 1
        return -WARNING_WEIGHT * match * max(0.0, min(1.0, 1.0 + recalled.score))
    return STRATEGY_WEIGHT * match * max(0.0, min(1.0, recalled.score))


def expected_gain(recalled: Recalled) -> float | None:
    """What memory foretells by what its trials weigh; of a recall that says nothing, the median of the trials, measured first."""
    if recalled.foretold is not None:
        return recalled.foretold
    strategy = recalled.strategy
    if strategy.calibrated and strategy.expected_gain is not None:
        return strategy.expected_gain
    measured = [t.gain for t in strategy.trials if t.gain is not None and t.tier != Tier.ESTIMATED]
    estimated = [t.gain for t in strategy.trials if t.gain is not None and t.tier == Tier.ESTIMATED]
    gains = measured or estimated
    return median(gains) if gains else strategy.expected_gain


def _record(strategy: Strategy) -> str:
    gains = [t for t in strategy.trials if t.gain is not None]
    if gains:
        best = max(gains, key=lambda t: t.gain or 0.0)
        tier = "estimated" if best.tier == Tier.ESTIMATED else "measured"
        tries = f"{len(strategy.trials)} {'try' if len(strategy.trials) == 1 else 'tries'}"
        return f"gained up to {best.gain:.2f}x in {tries} ({tier}, {best.device})"
    return f"predicts {strategy.expected_gain:.2f}x" if strategy.expected_gain else "advises it"


def _inspired(action: Action, briefing: Briefing) -> tuple[float, list[str]]:
    """Points of the shown candidate that speaks loudest for an action, and a clause that names it."""
    best, clause = 0.0, ""
    for one in briefing.inspirations:
        weight = MATE_WEIGHT if one.mate else INSPIRED_WEIGHT * (1.0 if one.speedup > briefing.speedup else 0.5)
        points = weight * max((likeness(action, step) for step in one.steps), default=0.0)
        if points > best:
            best, clause = points, f"candidate {one.candidate} ({one.speedup:.2f}x) took such a step"
    return best, [clause] if clause else []


def _lessons(action: Action, tried: tuple[Tried, ...]) -> tuple[float, list[str]]:
    total, clauses = 0.0, []
    for one in tried:
        alike = likeness(action, one.action)
        if not alike or one.verdict is Verdict.INFRASTRUCTURE:
            continue
        if one.verdict is not Verdict.PASS or one.gain is None:
            total -= FAILED_WEIGHT * alike
            clauses.append(f"{one.action} ended {one.verdict or 'in a refusal'}")
        elif one.gain < NO_GAIN:
            total -= SLOWER_WEIGHT * alike
            clauses.append(f"{one.action} gave {one.gain:.2f}x")
        else:
            total += FASTER_WEIGHT * alike
            clauses.append(f"{one.action} gave {one.gain:.2f}x")
    return total, clauses
