"""Where an entry stands: kept while nothing changes, and worked out again when something does."""

from datetime import UTC, datetime, timedelta

from knowledge.learning.learn import evidence_of, strategy_of
from knowledge.log.entry import Entry, Rewrite
from knowledge.recall.ageing import Moment
from knowledge.recall.standing import standing_of
from knowledge.recall.weighing import Place
from tests.knowledge.conftest import MakeOutcome

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)


def entry_of(make_outcome: MakeOutcome, gain: float = 2.0) -> Entry:
    """A learnt entry with one trial of today."""
    outcome = make_outcome(gain=gain)
    entry = Entry(id="e", seq=1, written=strategy_of(outcome), origin="learnt")
    entry.credit(evidence_of(outcome, cited=True).model_copy(update={"at": NOW.isoformat()}))
    return entry


def test_a_new_trial_changes_the_standing(make_outcome: MakeOutcome) -> None:
    """What is kept of an entry is forgotten when it is credited."""
    entry, moment = entry_of(make_outcome), Moment(NOW, {})
    before = standing_of(entry, Place("hopper"), moment)
    assert standing_of(entry, Place("hopper"), moment) is before
    entry.credit(evidence_of(make_outcome(plan="plan2", gain=1.0), cited=True))
    assert standing_of(entry, Place("hopper"), moment).mean < before.mean


def test_another_prediction_changes_the_standing(make_outcome: MakeOutcome) -> None:
    """A rewritten gain counts at once."""
    entry, moment = entry_of(make_outcome), Moment(NOW, {})
    before = standing_of(entry, Place("hopper"), moment)
    entry.reword(Rewrite(expected_gain=(None, 3.0), reason="measured", by="statistics"))
    assert standing_of(entry, Place("hopper"), moment).mean > before.mean


def test_another_day_and_another_generation_weigh_anew(make_outcome: MakeOutcome) -> None:
    """A year halves a trial's weight, and so does another generation of hardware."""
    entry = entry_of(make_outcome)
    here = standing_of(entry, Place("hopper"), Moment(NOW, {}))
    later = standing_of(entry, Place("hopper"), Moment(NOW + timedelta(days=365), {}))
    elsewhere = standing_of(entry, Place("ampere"), Moment(NOW, {}))
    assert later.mean == elsewhere.mean < here.mean


def test_other_versions_weigh_anew(make_outcome: MakeOutcome) -> None:
    """Where a device's versions have changed, a moment of another edition makes old evidence stale."""
    outcome = make_outcome(versions={"triton": "3.6.0"})
    entry = Entry(id="e", seq=1, written=strategy_of(outcome), origin="learnt")
    entry.credit(evidence_of(outcome, cited=True).model_copy(update={"at": (NOW - timedelta(days=60)).isoformat()}))
    device = outcome.device
    fresh = standing_of(entry, Place("hopper"), Moment(NOW, {device: {"triton": "3.6.1"}}, 1))
    stale = standing_of(entry, Place("hopper"), Moment(NOW, {device: {"triton": "3.7.0"}}, 2))
    assert stale.mean < fresh.mean
