"""States that follow from evidence."""

from typing import Any

import pytest

from knowledge.log.entry import Entry, Evidence
from knowledge.records import Situation, Strategy, StrategyState, Trial
from tools.records import ActionKind, Verdict


def make_entry(situation: Situation, state: StrategyState = StrategyState.SEEDED, **fields: Any) -> Entry:
    """An entry without evidence."""
    strategy = Strategy(title="t", situation=situation, kind=ActionKind.TILING, lesson="l", source="s", state=state)
    return Entry(id=strategy.id, seq=1, written=strategy, origin=fields.pop("origin", "seed"), **fields)


def evidence(plan: str, gain: float | None, tier: str = "bracketed", accepted: bool | None = None) -> Evidence:
    """One trial; a gain of None is a wrong candidate."""
    verdict = Verdict.WRONG if gain is None else Verdict.PASS
    trial = Trial(run="r", candidate="c", verdict=verdict, gain=gain, tier=tier, device="d")
    return Evidence(trial=trial, plan=plan, generation="hopper", accepted=(gain or 0) > 1 if accepted is None else accepted, cited=True)


@pytest.mark.parametrize(
    ("gains", "tier", "state"),
    [
        ([], "bracketed", StrategyState.SEEDED),
        ([1.2], "bracketed", StrategyState.OBSERVED),
        ([None], "bracketed", StrategyState.OBSERVED),
        ([1.2, None], "bracketed", StrategyState.OBSERVED),
        ([1.2, 1.3, 1.1], "bracketed", StrategyState.CONFIRMED),
        ([1.2, 1.3, 1.1], "estimated", StrategyState.OBSERVED),
        ([1.2, 1.3, 1.1, None, None, None], "bracketed", StrategyState.OBSERVED),
        ([None, 0.9], "bracketed", StrategyState.CONTRADICTED),
        ([None, 0.9, 1.1], "bracketed", StrategyState.CONTRADICTED),
    ],
)
def test_the_state_follows_from_the_tries(situation: Situation, gains: list[float | None], tier: str, state: StrategyState) -> None:
    """Three measured gains that are the majority confirm, a majority without a gain contradicts, estimates never confirm."""
    entry = make_entry(situation)
    for number, gain in enumerate(gains):
        entry.credit(evidence(f"p{number}", gain, tier))
    assert entry.state is state


def test_a_gain_that_was_not_accepted_is_no_gain(situation: Situation) -> None:
    """A win within the noise counts as a try that did not gain."""
    entry = make_entry(situation)
    entry.credit(evidence("p", 1.01, accepted=False))
    assert (entry.tally().tries, entry.tally().gained) == (1, 0)


def test_measured_tries_silence_estimated_ones(situation: Situation) -> None:
    """Gains of different tiers are never counted together."""
    entry = make_entry(situation)
    entry.credit(evidence("p1", 3.0, "estimated"))
    entry.credit(evidence("p2", 1.2))
    assert entry.tally().median_gain == 1.2
    assert entry.tally().tries == 1


def test_the_same_plan_is_credited_once(situation: Situation) -> None:
    """One plan of one run is one trial."""
    entry = make_entry(situation)
    assert entry.credit(evidence("p", 1.2))
    assert not entry.credit(evidence("p", 1.2))


def test_a_learnt_entry_predicts_what_its_measured_trials_kept(situation: Situation) -> None:
    """The prediction is the geometric mean of kept gains, with a rolled-back try as 1."""
    entry = make_entry(situation, StrategyState.OBSERVED, origin="learnt")
    entry.credit(evidence("p1", 4.0))
    entry.credit(evidence("p2", None))
    entry.credit(evidence("p3", 9.0, "estimated"))
    assert entry.strategy.expected_gain == pytest.approx(2.0)
