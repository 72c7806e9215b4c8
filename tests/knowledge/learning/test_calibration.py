"""How far predictions were off as runs went by."""

import math

import pytest

from knowledge.learning.calibration import by_runs
from knowledge.learning.replay import Experience
from knowledge.store import KnowledgeBase
from tests.knowledge.conftest import MakeOutcome


async def seen(base: KnowledgeBase, make: MakeOutcome, predicted: list[float | None], **changes: object) -> tuple[Experience, ...]:
    """One run for each prediction; all gained 2x."""
    for number, gain in enumerate(predicted):
        await base.learn(make(run=f"run{number}", gain=2.0, predicted_gain=gain, **changes))
    return base.experiences()


async def test_the_history_is_cut_by_runs(base: KnowledgeBase, make_outcome: MakeOutcome) -> None:
    """Each stretch has its own error, and the last one is as long as what is left."""
    stretches = by_runs(await seen(base, make_outcome, [4.0, 1.0, 2.0]), 2)
    assert [(one.first, one.last) for one in stretches] == [(1, 2), (3, 3)]
    assert [one.error for one in stretches] == [pytest.approx(2.0), pytest.approx(1.0)]


async def test_a_run_without_predictions_counts_as_a_run(base: KnowledgeBase, make_outcome: MakeOutcome) -> None:
    """Where nothing was predicted there is no error, and the runs after it keep their numbers."""
    stretches = by_runs(await seen(base, make_outcome, [None, 4.0]), 1)
    assert [len(one.errors) for one in stretches] == [0, 1]
    assert stretches[1].errors == (pytest.approx(math.log(2.0)),)


async def test_measured_gains_silence_estimated_ones(base: KnowledgeBase, make_outcome: MakeOutcome) -> None:
    """The two are never put into one figure."""
    await seen(base, make_outcome, [8.0], tier="estimated")
    await base.learn(make_outcome(run="later", gain=2.0, predicted_gain=2.0))
    assert [one.basis for one in by_runs(base.experiences(), 2)] == ["measured"]
    assert by_runs(base.experiences(), 2)[0].errors == (0.0,)
