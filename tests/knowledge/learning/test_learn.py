"""Credit, negative knowledge and idempotence."""

from typing import Any

import pytest

from knowledge.records import StrategyState
from knowledge.store import KnowledgeBase
from tests.knowledge.conftest import MakeBase, MakeOutcome
from tools.records import Action, ActionKind, Verdict


async def test_a_new_action_in_a_new_situation_becomes_an_entry(base: KnowledgeBase, make_outcome: MakeOutcome) -> None:
    """The entry carries situation, parameters, lesson, source and its first trial."""
    (made,) = await base.learn(make_outcome())
    strategy = base.get(made)
    assert strategy.state is StrategyState.OBSERVED
    assert strategy.parameters == {"online": True}
    assert strategy.situation.operators == ("aten.softmax.int",)
    assert strategy.source == "run run1, candidate cand1"
    assert [trial.gain for trial in strategy.trials] == [1.5]


async def test_learning_twice_changes_nothing_and_says_the_same(base: KnowledgeBase, make_outcome: MakeOutcome) -> None:
    """A resumed run that repeats an outcome gets the same ids, and the log does not grow."""
    first = await base.learn(make_outcome())
    events = base.stats()["events"]
    assert await base.learn(make_outcome()) == first
    assert base.stats()["events"] == events


async def test_another_process_may_repeat_it_too(make_base: MakeBase, make_outcome: MakeOutcome) -> None:
    """The key is in the log, not in memory."""
    first = await make_base().learn(make_outcome())
    again = make_base()
    assert await again.learn(make_outcome()) == first
    assert len(again.get(first[0]).trials) == 1


async def test_the_same_action_in_the_same_situation_credits_the_same_entry(base: KnowledgeBase, make_outcome: MakeOutcome) -> None:
    """Other words and another run make no duplicate."""
    first = await base.learn(make_outcome())
    again = await base.learn(make_outcome(run="run2", lesson="Said otherwise.", gain=1.2))
    assert again == first
    assert [trial.gain for trial in base.get(first[0]).trials] == [1.5, 1.2]


async def test_other_parameters_make_another_entry(base: KnowledgeBase, make_outcome: MakeOutcome) -> None:
    """What was tried is part of what is known."""
    await base.learn(make_outcome())
    await base.learn(make_outcome(plan="plan2", action=Action(kind=ActionKind.ALGORITHM, region="r0", parameters={"split": 4})))
    assert len(base.all()) == 2


async def test_a_cited_strategy_is_credited_beside_the_new_entry(base: KnowledgeBase, make_outcome: MakeOutcome) -> None:
    """Both the strategy the plan rests on and the entry of the action itself get the trial."""
    (cited,) = await base.learn(make_outcome())
    action = Action(kind=ActionKind.TILING, region="r0", parameters={"BLOCK_N": 4096})
    changed = await base.learn(make_outcome(plan="plan2", action=action, cited=(cited,), gain=1.3))
    assert changed[0] == cited
    assert len(changed) == 2
    assert [trial.gain for trial in base.get(cited).trials] == [1.5, 1.3]


async def test_recalled_but_not_cited_is_recorded_as_such(base: KnowledgeBase, make_outcome: MakeOutcome) -> None:
    """An ignored strategy gets no trial, and its history says that it was ignored."""
    (shown,) = await base.learn(make_outcome())
    action = Action(kind=ActionKind.TILING, region="r0", parameters={"BLOCK_N": 4096})
    await base.learn(make_outcome(plan="plan2", action=action, recalled=(shown,)))
    assert len(base.get(shown).trials) == 1
    assert any("ignored" in line for line in base.history(shown))


async def test_an_unknown_citation_is_noted_not_fatal(base: KnowledgeBase, make_outcome: MakeOutcome) -> None:
    """A language model may cite what does not exist."""
    changed = await base.learn(make_outcome(cited=("no such id",)))
    assert len(changed) == 1


async def test_failures_are_kept_as_negative_knowledge(base: KnowledgeBase, make_outcome: MakeOutcome, failed: dict[str, Any]) -> None:
    """A failed candidate makes an entry whose trial carries the verdict and no gain."""
    (made,) = await base.learn(make_outcome(**failed))
    (trial,) = base.get(made).trials
    assert (trial.verdict, trial.gain) == (Verdict.WRONG, None)


@pytest.mark.parametrize("verdict", [Verdict.INFRASTRUCTURE, Verdict.TIMED_OUT])
async def test_what_was_not_judged_teaches_nothing(base: KnowledgeBase, make_outcome: MakeOutcome, verdict: Verdict) -> None:
    """A failing machine and a limit of time say nothing about an action, and the plan can be learnt from later."""
    assert await base.learn(make_outcome(verdict=verdict, gain=None, accepted=False)) == ()
    assert base.all() == ()
    assert len(await base.learn(make_outcome())) == 1


async def test_a_gain_that_is_no_number_is_not_kept(base: KnowledgeBase, make_outcome: MakeOutcome) -> None:
    """NaN and infinity would spoil every mean they enter."""
    for plan, gain in (("p1", float("nan")), ("p2", float("inf")), ("p3", -1.0)):
        await base.learn(make_outcome(plan=plan, gain=gain))
    assert [trial.gain for trial in base.all()[0].trials] == [None, None, None]


WORD = {"lesson": "It took 1/1.50 of the time.", "word": "One pass saves a reading."}


async def test_a_models_word_is_no_lesson(base: KnowledgeBase, make_outcome: MakeOutcome) -> None:
    """What a model makes of one outcome is kept beside it, and the lesson stays what was measured."""
    (made,) = await base.learn(make_outcome(**WORD))
    assert base.get(made).lesson == WORD["lesson"]


async def test_a_second_measurement_vouches_for_a_models_word(base: KnowledgeBase, make_outcome: MakeOutcome) -> None:
    """Once another candidate was measured to gain as well, the word joins the lesson, once; the id stays."""
    (made,) = await base.learn(make_outcome(**WORD))
    for number in (2, 3):
        assert made in await base.learn(make_outcome(run=f"run{number}", candidate=f"cand{number}", lesson="x", word="Other words."))
    assert base.get(made).lesson == "It took 1/1.50 of the time. A model said, and a second measurement agrees: One pass saves a reading."


@pytest.mark.parametrize(
    "second",
    [
        {"candidate": "cand1"},
        {"candidate": "cand2", "accepted": False, "gain": 0.9},
        {"candidate": "cand2", "tier": "estimated"},
        {"candidate": "cand2", "verdict": Verdict.WRONG, "gain": None, "accepted": False},
    ],
    ids=["the same candidate", "no gain", "an estimate", "a failure"],
)
async def test_what_does_not_agree_vouches_for_nothing(base: KnowledgeBase, make_outcome: MakeOutcome, second: dict[str, Any]) -> None:
    """The same candidate again, another end, or an estimate is no second measurement that agrees."""
    (made,) = await base.learn(make_outcome(**WORD))
    await base.learn(make_outcome(run="run2", **second))
    assert base.get(made).lesson == WORD["lesson"]


async def test_an_entry_carries_the_kernel_it_came_from(base: KnowledgeBase, make_outcome: MakeOutcome) -> None:
    """The excerpt is kept once, with the entry; the log of outcomes does without."""
    (made,) = await base.learn(make_outcome(excerpt="@triton.jit\ndef k(): ..."))
    assert base.get(made).excerpt == "@triton.jit\ndef k(): ..."
