"""What is recalled, in which order, and why."""

import itertools
from typing import Any

import pytest

from knowledge.records import Outcome, Situation
from knowledge.store import KnowledgeBase
from tests.knowledge.conftest import MakeBase, MakeOutcome
from tools.records import Action, ActionKind, Bottleneck, OperatorFamily


async def teach(base: KnowledgeBase, make: MakeOutcome, gains: dict[int, float | None], **changes: Any) -> None:
    """Learn one tiling action a block size, with the gain given."""
    for block, gain in gains.items():
        action = Action(kind=ActionKind.TILING, region="r0", parameters={"BLOCK_N": block})
        await base.learn(make(plan=f"plan{block}{changes}", action=action, gain=gain, **changes))


async def blocks(base: KnowledgeBase, situation: Situation, limit: int = 6) -> list[object]:
    """The block sizes recalled, in order."""
    return [found.strategy.parameters.get("BLOCK_N") for found in await base.recall(situation, limit)]


async def test_what_was_just_learnt_is_recalled_with_its_reasons(
    base: KnowledgeBase, make_outcome: MakeOutcome, situation: Situation
) -> None:
    """A recall right after learning finds the entry and says why in words."""
    (made,) = await base.learn(make_outcome())
    (found,) = await base.recall(situation)
    assert found.strategy.id == made
    assert not found.warning
    for reason in ("family softmax", "bottleneck excess-traffic", "similarity", "1 of 1 tries gained (measured, median 1.50x)"):
        assert reason in found.why


async def test_the_larger_measured_gain_comes_first(base: KnowledgeBase, make_outcome: MakeOutcome, situation: Situation) -> None:
    """Entries of one situation are ordered by what they were worth."""
    await teach(base, make_outcome, {512: 1.1, 1024: 2.5, 2048: 1.6})
    assert await blocks(base, situation) == [1024, 2048, 512]


async def test_a_failure_is_recalled_as_a_warning_after_the_advice(
    base: KnowledgeBase, make_outcome: MakeOutcome, situation: Situation, failed: dict[str, Any]
) -> None:
    """Negative knowledge is shown, marked, and never ranked as advice."""
    await base.learn(make_outcome(plan="bad", action=Action(kind=ActionKind.TILING, region="r0", parameters={"BLOCK_N": 64}), **failed))
    await base.learn(make_outcome())
    advice, warning = await base.recall(situation)
    assert (advice.warning, warning.warning) == (False, True)
    assert "failed (WRONG)" in warning.why
    assert warning.score <= 0 < advice.score


async def test_an_accepted_gain_is_needed_to_be_advice(base: KnowledgeBase, make_outcome: MakeOutcome, situation: Situation) -> None:
    """A slower candidate that passed is a warning too."""
    await base.learn(make_outcome(gain=0.8, accepted=False))
    assert [found.warning for found in await base.recall(situation)] == [True]


@pytest.mark.parametrize(
    "other",
    [{"families": (OperatorFamily.SCAN,)}, {"backend": "cuda"}],
    ids=["family", "backend"],
)
async def test_typed_filters_keep_the_rest_out(
    base: KnowledgeBase, make_outcome: MakeOutcome, situation: Situation, other: dict[str, Any]
) -> None:
    """Nothing of another family or backend is recalled, however similar its words."""
    await base.learn(make_outcome())
    assert await base.recall(situation.model_copy(update=other)) == ()


async def test_another_bottleneck_is_recalled_last_and_said(base: KnowledgeBase, make_outcome: MakeOutcome, situation: Situation) -> None:
    """Advice for another bottleneck fills empty places only, behind the matching one, although it gained more."""
    other = situation.model_copy(update={"bottleneck": Bottleneck.REGISTERS})
    await teach(base, make_outcome, {64: 1.6}, situation=other)
    await teach(base, make_outcome, {512: 1.4})
    found = await base.recall(situation)
    assert [f.strategy.parameters["BLOCK_N"] for f in found] == [512, 64]
    assert "another bottleneck (registers)" in found[1].why


async def test_the_same_kind_and_parameters_are_shown_once(base: KnowledgeBase, make_outcome: MakeOutcome, situation: Situation) -> None:
    """Two situations that taught the same action take one place."""
    await teach(base, make_outcome, {512: 1.4})
    await teach(base, make_outcome, {512: 1.5}, situation=situation.model_copy(update={"operators": ("aten.log_softmax.int",)}))
    assert await blocks(base, situation) == [512]


async def test_trials_on_other_hardware_weigh_less(make_base: MakeBase, make_outcome: MakeOutcome, situation: Situation) -> None:
    """The same gain is worth more where it was measured on this generation."""
    here, elsewhere = make_base("here"), make_base("elsewhere")
    await here.learn(make_outcome())
    await elsewhere.learn(make_outcome(situation=situation.model_copy(update={"generation": "ampere"})))
    (near,), (far,) = await here.recall(situation), await elsewhere.recall(situation)
    assert near.score > far.score
    assert "learnt on ampere" in far.why


async def test_estimates_weigh_less_than_measurements(make_base: MakeBase, make_outcome: MakeOutcome, situation: Situation) -> None:
    """An estimated gain moves the expectation less, and is called estimated."""
    measured, estimated = make_base("measured"), make_base("estimated")
    await measured.learn(make_outcome(gain=3.0))
    await estimated.learn(make_outcome(gain=3.0, tier="estimated"))
    (sure,), (guess,) = await measured.recall(situation), await estimated.recall(situation)
    assert sure.score > guess.score
    assert "(estimated" in guess.why


async def test_the_limit_holds_and_zero_means_nothing(base: KnowledgeBase, make_outcome: MakeOutcome, situation: Situation) -> None:
    """At most `limit` entries are shown."""
    await teach(base, make_outcome, {2**n: 1.0 + n / 10 for n in range(5, 12)})
    assert len(await base.recall(situation, 3)) == 3
    assert await base.recall(situation, 0) == ()


async def test_recall_is_deterministic(make_base: MakeBase, make_outcome: MakeOutcome, situation: Situation) -> None:
    """Two openings of one store answer alike, and repeating does not change the answer."""
    base = make_base()
    await teach(base, make_outcome, {2**n: 1.2 for n in range(5, 12)})
    first = await base.recall(situation)
    assert await base.recall(situation) == first
    assert await make_base().recall(situation) == first


async def test_every_recall_is_logged_with_its_scores(base: KnowledgeBase, make_outcome: MakeOutcome, situation: Situation) -> None:
    """The log says what was recalled for whom."""
    await base.learn(make_outcome())
    await base.recall(situation)
    assert base.stats()["events"] == {"outcome": 1, "recall": 1, "strategy": 1, "trial": 1}


async def test_more_trials_leave_less_doubt(base: KnowledgeBase, make_outcome: MakeOutcome, situation: Situation) -> None:
    """The distance between the expected and the possible gain shrinks as trials are added."""

    async def doubt() -> float:
        (found,) = await base.recall(situation)
        expected, up_to = (float(part.split("x")[0]) for part in found.why.split("expects ")[1].split("(up to "))
        return up_to / expected

    widths = []
    for number in range(3):
        await base.learn(make_outcome(run=f"run{number}"))
        widths.append(await doubt())
    assert all(later < earlier for earlier, later in itertools.pairwise(widths))


def test_outcomes_need_no_lesson(base: KnowledgeBase, make_outcome: MakeOutcome) -> None:
    """Where the reviewer said nothing, the entry still says what happened."""
    outcome: Outcome = make_outcome(lesson="")
    base.learn_now(outcome)
    assert "1.50 times as fast" in base.all()[0].lesson


async def test_a_request_for_tuning_is_no_advice(base: KnowledgeBase, make_outcome: MakeOutcome, situation: Situation) -> None:
    """What asked the tuner for trials is kept and counted, and takes no place among what is recalled."""
    request = Action(kind=ActionKind.LAUNCH, region="r0", parameters={"tune": 16})
    (kept,) = await base.learn(make_outcome(plan="tuning", action=request))
    (advice,) = await base.learn(make_outcome())
    assert [found.strategy.id for found in await base.recall(situation)] == [advice]
    assert len(base.get(kept).trials) == 1


@pytest.mark.parametrize(
    ("learnt", "asked", "warned"), [("exact", "default", False), ("default", "exact", True), ("tf32", "default", True)]
)
async def test_what_another_policy_may_forbid_counts_less(
    base: KnowledgeBase, make_outcome: MakeOutcome, situation: Situation, learnt: str, asked: str, warned: bool
) -> None:
    """What was learnt in full float32 holds where cuDNN may round, too; the other way round it is said, and counts less."""
    await base.learn(make_outcome(situation=situation.model_copy(update={"policy": learnt})))
    (same,) = await base.recall(situation.model_copy(update={"policy": learnt}))
    (found,) = await base.recall(situation.model_copy(update={"policy": asked}))

    assert (f"learnt under policy {learnt}" in found.why) is warned
    assert (found.score < same.score) is warned
