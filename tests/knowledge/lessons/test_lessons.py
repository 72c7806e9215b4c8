"""The textual gradient: what outcomes do to lessons and predictions, and the way back."""

import math
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from knowledge.learning.calibration import calibrate, compare
from knowledge.lessons.writers import Case, Proposal
from knowledge.records import RECORD, Situation, StrategyState
from knowledge.store import KnowledgeBase
from tests.knowledge.conftest import MakeBase, MakeOutcome
from tools.errors import MachineError, UserError
from tools.records import Verdict


class Author:
    """A writer that says and predicts what it was made with."""

    name = "author"

    def __init__(self, lesson: str, expected_gain: float | None = None, fails: bool = False) -> None:
        self._proposal = Proposal(lesson=lesson, expected_gain=expected_gain, reason="It was so.")
        self._fails = fails

    async def rewrite(self, case: Case) -> Proposal:
        """Propose the same for every case."""
        if self._fails:
            raise MachineError("The server is down.", "Start it.")
        return self._proposal


async def teach(base: KnowledgeBase, make: MakeOutcome, gains: list[float | None], **changes: Any) -> str:
    """Let one strategy be followed once a run; None is a failure."""
    name, tag = "", changes.pop("tag", "")
    for number, gain in enumerate(gains):
        came: dict[str, Any] = {"run": f"run{number}{tag}", "gain": gain, "accepted": bool(gain and gain > 1)}
        failed = {} if gain else {"verdict": Verdict.WRONG}
        (name,) = await base.learn(make(**(came | failed | changes)))
    return name


async def test_the_statistics_rewrite_lesson_and_prediction(base: KnowledgeBase, make_outcome: MakeOutcome) -> None:
    """The author's words stay, the record follows them, the prediction is the shrunken mean of what passed, and the id stays."""
    name = await teach(base, make_outcome, [2.0, None])
    update = await base.update()
    strategy = base.get(name)
    assert (update.by, update.outcomes, update.rewritten) == ("statistics", 2, (name,))
    assert strategy.lesson.startswith(f"One pass over the row wins.{RECORD}1 of 2 tries passed")
    assert "1 ended WRONG" in strategy.lesson
    assert strategy.expected_gain == pytest.approx(math.exp((math.log(1.15) + math.log(2.0)) / 2), abs=1e-4)
    assert strategy.calibrated
    assert strategy.id == name


async def test_a_second_pass_without_outcomes_changes_nothing(base: KnowledgeBase, make_outcome: MakeOutcome) -> None:
    """Passes go over what is new; over everything again they find what they wrote."""
    await teach(base, make_outcome, [1.5, 1.5])
    await base.update()
    assert (await base.update()).outcomes == 0
    assert (await base.update(everything=True)).rewritten == ()


async def test_every_change_is_a_diff_with_its_reason(base: KnowledgeBase, make_outcome: MakeOutcome) -> None:
    """Before and after stand beside what was promised and what came of it."""
    name = await teach(base, make_outcome, [2.0, 2.0])
    await base.update()
    (change,) = base.changes()
    assert (change.kind, change.by, change.strategy, change.reverted) == ("rewrite", "statistics", name, False)
    assert "2.00x in the middle (measured)" in change.reason
    assert any(line.startswith("+ Record:") or RECORD.strip() in line for line in change.diff)
    assert "- predicted gain: 2.00x" in change.diff


async def test_a_revert_restores_and_stays(make_base: MakeBase, make_outcome: MakeOutcome) -> None:
    """Words and prediction are what they were, here and in another process, until there is new evidence."""
    base, other = make_base(), make_base()
    name = await teach(base, make_outcome, [2.0, 2.0])
    before = base.get(name)
    await base.update()
    assert other.get(name).lesson != before.lesson
    base.revert(base.changes()[0].change, "the driver was broken")
    assert base.get(name) == other.get(name) == before
    assert (await base.update()).rewritten == ()
    assert [c.reverted for c in base.changes()] == [True, False]


async def test_what_cannot_be_reverted_is_said(base: KnowledgeBase, make_outcome: MakeOutcome) -> None:
    """No such change, no reason, twice, or one that was built upon."""
    await teach(base, make_outcome, [2.0, 2.0])
    await base.update()
    first = base.changes()[0].change
    with pytest.raises(UserError, match="no change 99999"):
        base.revert(99999, "x")
    with pytest.raises(UserError, match="needs a reason"):
        base.revert(first, " ")
    await teach(base, make_outcome, [0.7, 0.7], tag="b")
    await base.update()
    with pytest.raises(UserError, match="rewritten again"):
        base.revert(first, "x")
    second = base.changes()[-1].change
    base.revert(second, "x")
    with pytest.raises(UserError, match="reverted already"):
        base.revert(second, "x")


async def test_a_rewritten_lesson_is_found_by_its_new_words(base: KnowledgeBase, make_outcome: MakeOutcome) -> None:
    """The index follows a rewrite and its revert without being made anew."""
    await teach(base, make_outcome, [2.0, 2.0])
    base.search("anything")
    await base.update(Author("Zebras graze on savannahs."))
    (found,) = base.near("zebras graze on savannahs")
    base.revert(base.changes()[0].change, "no zebras")
    (after,) = base.near("zebras graze on savannahs")
    assert found.score > after.score
    assert base.notes == ()


async def test_a_models_prediction_must_agree_with_the_trials(base: KnowledgeBase, make_outcome: MakeOutcome) -> None:
    """Its words are taken; a figure that the trials rule out is replaced by theirs, and that is said."""
    name = await teach(base, make_outcome, [1.5] * 6)
    await base.update(Author("Do it on long rows only.", 9.0))
    strategy, (change,) = base.get(name), base.changes()
    assert strategy.lesson == "Do it on long rows only."
    assert strategy.expected_gain is not None
    assert strategy.expected_gain < 1.6
    assert "9.00x was proposed, which the trials rule out" in change.reason
    assert change.by == "author"


async def test_where_the_model_fails_the_statistics_write_and_it_is_said(base: KnowledgeBase, make_outcome: MakeOutcome) -> None:
    """A server that is down costs the words, not the pass."""
    await teach(base, make_outcome, [1.5, 1.5])
    update = await base.update(Author("", fails=True))
    assert len(update.rewritten) == 1
    assert update.notes == ("author could not rewrite: The server is down. The statistics did.",)
    assert base.changes()[0].by == "statistics"


async def test_the_record_names_what_tells_gains_from_losses(base: KnowledgeBase, make_outcome: MakeOutcome, situation: Situation) -> None:
    """A cited strategy that gains on one class of shapes and not on another says so."""
    (seed,) = await base.learn(make_outcome(run="first"))
    for number, (shapes, gain) in enumerate([("many-short", 1.5), ("many-short", 1.4), ("few-long", 0.8), ("few-long", 0.9)]):
        here = situation.model_copy(update={"shapes": shapes})
        await base.learn(make_outcome(run=f"r{number}", situation=here, cited=(seed,), gain=gain, accepted=gain > 1))
    await base.update()
    assert "Gained by shapes: many-short 2 of 2, few-long 0 of 2." in base.get(seed).lesson


async def test_it_happens_by_itself_after_enough_runs(make_base: MakeBase, make_outcome: MakeOutcome) -> None:
    """The third run's end brings a pass where three were asked for; repeating a run's end does not count."""
    base = make_base(update_every=3)
    await teach(base, make_outcome, [1.5, 1.5])
    assert [await base.finish(run) is None for run in ("a", "a", "b", "c", "c")] == [True, True, True, False, True]
    assert base.stats()["updates"] == 1


async def test_predictions_agree_better_after_a_pass(base: KnowledgeBase, make_outcome: MakeOutcome) -> None:
    """Plans that predict what memory says are off by less once it was rewritten; measured and estimated gains are not mixed."""
    name = await teach(base, make_outcome, [1.4, 1.4, 1.4], predicted_gain=3.0)
    await base.update()
    told = base.get(name).expected_gain
    await teach(base, make_outcome, [1.4, 1.4], predicted_gain=told, tag="after")
    await base.learn(make_outcome(run="guess", plan="guess", tier="estimated", gain=50.0, predicted_gain=1.0))
    compared = base.calibration()
    assert compared is not None
    assert compared.before is not None
    assert compared.after is not None
    assert (compared.basis, compared.by_update) == ("measured", True)
    assert compared.before.error == pytest.approx(3.0 / 1.4)
    assert compared.after.error < 1.1
    assert compared.after.predictions == 2


def test_without_predictions_there_is_no_calibration() -> None:
    """Nothing is made of nothing."""
    assert calibrate([], estimated=False) is None
    assert compare([], []) is None


async def test_worth_tells_cited_from_ignored(base: KnowledgeBase, make_outcome: MakeOutcome, situation: Situation) -> None:
    """What plans that cited a strategy gained stands beside what plans gained that had seen it and did not."""
    (name,) = await base.learn(make_outcome())
    await base.recall(situation)
    shown = {"recalled": (name,), "situation": situation.model_copy(update={"shapes": "few-long"})}
    await base.learn(make_outcome(run="r2", cited=(name,), gain=1.8, **shown))
    await base.learn(make_outcome(run="r3", gain=1.1, **shown))
    worth = base.worth(name)
    assert (worth.recalled, worth.cited, worth.ignored) == (1, 1, 1)
    assert (worth.cited_gain, worth.ignored_gain, worth.basis) == (1.8, 1.1, "measured")


async def test_an_export_carries_rewrites(make_base: MakeBase, make_outcome: MakeOutcome, tmp_path: Any) -> None:
    """Words, prediction and the history of both arrive under the same id."""
    base, other = make_base("one"), make_base("two")
    await teach(base, make_outcome, [1.5, 1.5])
    await base.update()
    base.export(tmp_path / "memory.jsonl")
    other.import_(tmp_path / "memory.jsonl")
    assert other.all() == base.all()
    assert other.changes()[0].reason == base.changes()[0].reason
    assert base.all()[0].state is StrategyState.OBSERVED


async def test_old_trials_move_a_prediction_less(make_base: MakeBase, make_outcome: MakeOutcome) -> None:
    """A pass a half-life later weighs both trials half, so that the prediction stays nearer to where it began."""
    name = await teach(make_base("store"), make_outcome, [2.0, 2.0])
    later = make_base("store", clock=lambda: datetime.now(UTC) + timedelta(days=30), half_life=30)
    await later.update()
    assert later.get(name).expected_gain == pytest.approx(math.exp((math.log(1.15) + math.log(2.0)) / 2), rel=0.02)
