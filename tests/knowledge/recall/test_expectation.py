"""What memory expects of an action that was tried in a situation."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from knowledge.protocol import FrozenMemory, NoMemory
from knowledge.recall.expectation import weighted_median
from knowledge.recall.standing import UNKNOWN_GAIN
from knowledge.records import Situation
from knowledge.store import KnowledgeBase
from tests.knowledge.conftest import MakeBase, MakeOutcome
from tools.errors import UserError
from tools.records import Action, ActionKind

ACTION = Action(kind=ActionKind.TILING, region="r0", parameters={"BLOCK_N": 512})


def at(situation: Situation, share: float) -> Situation:
    """The situation of a parent that has reached this share of the floor."""
    return situation.model_copy(update={"figures": {"floor_share": share}})


async def tried(base: KnowledgeBase, make: MakeOutcome, situation: Situation, share: float, gain: float | None, **changes: Any) -> None:
    """Try the action on a parent at a share of the floor."""
    await base.learn(make(plan=f"{share} {gain} {changes}", action=ACTION, situation=at(situation, share), gain=gain, **changes))


async def test_nothing_is_expected_of_what_was_never_tried(base: KnowledgeBase, make_outcome: MakeOutcome, situation: Situation) -> None:
    """Another parameter, another bottleneck and a failed try say nothing about a gain."""
    await tried(base, make_outcome, situation, 0.2, None, verdict="WRONG", accepted=False)
    assert await base.expect(at(situation, 0.2), ACTION) is None
    await tried(base, make_outcome, situation, 0.2, 1.5)
    other = ACTION.model_copy(update={"parameters": {"BLOCK_N": 1024}})
    assert await base.expect(at(situation, 0.2), other) is None
    assert await base.expect(at(situation, 0.2).model_copy(update={"bottleneck": "launch"}), ACTION) is None


async def test_a_slower_parent_is_expected_to_gain_more(base: KnowledgeBase, make_outcome: MakeOutcome, situation: Situation) -> None:
    """An action ends where it ended before, from wherever it starts."""
    await tried(base, make_outcome, situation, 0.4, 2.0)
    assert await base.expect(at(situation, 0.4), ACTION) == pytest.approx(2.0)
    assert await base.expect(at(situation, 0.2), ACTION) == pytest.approx(4.0)


async def test_the_trial_of_a_like_parent_counts_most(base: KnowledgeBase, make_outcome: MakeOutcome, situation: Situation) -> None:
    """Where two trials ended apart, the one that began here is believed."""
    await tried(base, make_outcome, situation, 0.4, 2.0)
    await tried(base, make_outcome, situation, 0.1, 2.0)
    assert await base.expect(at(situation, 0.4), ACTION) == pytest.approx(2.0, rel=0.05)


async def test_a_measured_trial_silences_an_estimated_one(base: KnowledgeBase, make_outcome: MakeOutcome, situation: Situation) -> None:
    """Estimates count only where nothing was measured."""
    await tried(base, make_outcome, situation, 0.3, 3.0, tier="estimated")
    assert await base.expect(at(situation, 0.3), ACTION) == pytest.approx(3.0)
    await tried(base, make_outcome, situation, 0.3, 1.2)
    assert await base.expect(at(situation, 0.3), ACTION) == pytest.approx(1.2)


async def test_what_only_cited_a_strategy_is_no_trial_of_it(base: KnowledgeBase, make_outcome: MakeOutcome, situation: Situation) -> None:
    """A plan that took another action on a strategy's advice says nothing about the strategy's own action."""
    await tried(base, make_outcome, situation, 0.3, 1.2)
    (own,) = [one.id for one in base.all()]
    other = ACTION.model_copy(update={"parameters": {"BLOCK_N": 256}})
    await base.learn(make_outcome(plan="cites", action=other, situation=at(situation, 0.3), gain=5.0, cited=(own,)))
    assert await base.expect(at(situation, 0.3), ACTION) == pytest.approx(1.2)


async def test_a_frozen_memory_expects_and_none_does_not(base: KnowledgeBase, make_outcome: MakeOutcome, situation: Situation) -> None:
    """What only recalls still predicts; a memory that is off predicts nothing."""
    await tried(base, make_outcome, situation, 0.3, 1.2)
    assert await FrozenMemory(base).expect(at(situation, 0.3), ACTION) == pytest.approx(1.2)
    assert await NoMemory().expect(at(situation, 0.3), ACTION) is None


async def test_the_same_step_on_the_same_parent_is_believed_alone(
    base: KnowledgeBase, make_outcome: MakeOutcome, situation: Situation
) -> None:
    """A plan that was carried out before predicts what it came to, whatever other parents as fast as its own came to."""
    for plan, gain in (("mine", 1.1), ("other", 3.0)):
        await base.learn(make_outcome(plan=plan, action=ACTION, situation=at(situation, 0.3), gain=gain))
    assert await base.expect(at(situation, 0.3), ACTION, "mine") == pytest.approx(1.1)
    assert await base.expect(at(situation, 0.3), ACTION, "new") == pytest.approx((1.1 * 3.0) ** 0.5)
    assert await base.expect(at(situation, 0.15), ACTION, "mine") != pytest.approx(1.1)


def ahead(days: int) -> Any:
    """A clock that runs ahead."""
    return lambda: datetime.now(UTC) + timedelta(days=days)


async def test_trials_of_other_versions_count_less(base: KnowledgeBase, make_outcome: MakeOutcome, situation: Situation) -> None:
    """Of two trials on like parents the one with the present compiler counts more."""
    await tried(base, make_outcome, situation, 0.3, 3.0, versions={"triton": "3.6.0"})
    assert await base.expect(at(situation, 0.3), ACTION) == pytest.approx(3.0)
    await tried(base, make_outcome, situation, 0.3, 1.2, versions={"triton": "3.9.0"})
    # 0.7 of a trial of 3.0 and one of 1.2
    assert await base.expect(at(situation, 0.3), ACTION) == pytest.approx((3.0**0.7 * 1.2) ** (1 / 1.7))


async def test_trials_on_another_device_count_less(base: KnowledgeBase, make_outcome: MakeOutcome, situation: Situation) -> None:
    """Two devices of one generation share an entry; each foretells itself more."""
    for device, gain in (("h100", 3.0), ("h200", 1.2)):
        await tried(base, make_outcome, situation.model_copy(update={"device": device}), 0.3, gain)
    here, there = (at(situation, 0.3).model_copy(update={"device": device}) for device in ("h200", "h100"))
    assert await base.expect(here, ACTION) == pytest.approx((3.0**0.8 * 1.2) ** (1 / 1.8))
    assert await base.expect(there, ACTION) == pytest.approx((3.0 * 1.2**0.8) ** (1 / 1.8))


async def test_what_has_aged_away_foretells_nothing(make_base: MakeBase, make_outcome: MakeOutcome, situation: Situation) -> None:
    """Four half-lives leave less than a tenth; a memory whose evidence does not age still expects it."""
    await tried(make_base(), make_outcome, situation, 0.3, 3.0)
    assert await make_base(clock=ahead(300), half_life=100).expect(at(situation, 0.3), ACTION) == pytest.approx(3.0)
    assert await make_base(clock=ahead(400), half_life=100).expect(at(situation, 0.3), ACTION) is None
    assert await make_base(clock=ahead(400), half_life=0).expect(at(situation, 0.3), ACTION) == pytest.approx(3.0)


async def test_the_same_step_of_other_versions_is_not_believed_alone(
    base: KnowledgeBase, make_outcome: MakeOutcome, situation: Situation
) -> None:
    """An old compiler's trial of this very plan counts beside what the present one came to on other parents."""
    await base.learn(make_outcome(plan="mine", action=ACTION, situation=at(situation, 0.3), gain=3.0, versions={"triton": "3.6.0"}))
    assert await base.expect(at(situation, 0.3), ACTION, "mine") == pytest.approx(3.0)
    await base.learn(make_outcome(plan="other", action=ACTION, situation=at(situation, 0.3), gain=1.2, versions={"triton": "3.9.0"}))
    assert await base.expect(at(situation, 0.3), ACTION, "mine") == pytest.approx((3.0**0.7 * 1.2) ** (1 / 1.7))
    await base.learn(
        make_outcome(run="r2", plan="mine", action=ACTION, situation=at(situation, 0.3), gain=2.0, versions={"triton": "3.9.0"})
    )
    assert await base.expect(at(situation, 0.3), ACTION, "mine") == pytest.approx(2.0)


def test_a_half_life_that_is_none_is_refused(make_base: MakeBase) -> None:
    """No negative days, and no NaN."""
    for days in (-1.0, float("nan")):
        with pytest.raises(UserError, match="half-life"):
            make_base(half_life=days)


async def test_a_recalled_strategy_foretells_by_what_its_trials_weigh(
    base: KnowledgeBase, make_outcome: MakeOutcome, situation: Situation
) -> None:
    """Two gains of an old compiler count 0.7 each, so the middle of the weight lies nearer to the present one's than the median."""
    for run, gain, triton in (("r1", 3.0, "3.6.0"), ("r2", 3.0, "3.6.0"), ("r3", 1.2, "3.9.0")):
        await base.learn(make_outcome(run=run, gain=gain, versions={"triton": triton}))
    # 1.2 stands at 0.5 of 2.4, the first 3.0 at 1.35: the half, 1.2, lies between them
    assert [found.foretold for found in await base.recall(situation)] == [pytest.approx(1.2 + 1.8 * 0.7 / 0.85)]
    await base.learn(make_outcome(run="r4", gain=1.4, versions={"triton": "3.9.0"}))
    # 1.4 stands at 1.5 of 3.4, the first 3.0 at 2.35
    assert [found.foretold for found in await base.recall(situation)] == [pytest.approx(1.4 + 1.6 * 0.2 / 0.85)]


async def test_a_strategy_whose_trials_have_aged_away_foretells_what_its_source_says(
    make_base: MakeBase, make_outcome: MakeOutcome, situation: Situation
) -> None:
    """One that was learnt here has no other source: it foretells what is expected of the untried."""
    await make_base().learn(make_outcome(gain=3.0))
    (found,) = await make_base(clock=ahead(400), half_life=100).recall(situation)
    assert found.foretold == UNKNOWN_GAIN


@pytest.mark.parametrize(
    ("weighted", "middle"),
    [
        ([(2.0, 1.0)], 2.0),
        ([(3.0, 1.0), (1.0, 1.0)], 2.0),
        ([(1.0, 1.0), (2.0, 1.0), (9.0, 1.0)], 2.0),
        ([(1.0, 0.7), (2.0, 0.7), (9.0, 1.5)], 50 / 11),
    ],
)
def test_the_weighted_median(weighted: list[tuple[float, float]], middle: float) -> None:
    """Equal weights give the median; else the value in the middle of the weight."""
    assert weighted_median(weighted) == pytest.approx(middle)


def test_a_little_age_moves_the_median_a_little() -> None:
    """Two trials a day apart foretell nearly what two of one day do."""
    assert weighted_median([(1.0, 1.0), (3.0, 0.998)]) == pytest.approx(2.0, abs=0.01)
