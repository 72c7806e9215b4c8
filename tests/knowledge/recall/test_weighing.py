"""What a trial weighs for whoever asks, and the reasons."""

from datetime import UTC, datetime, timedelta

import pytest

from knowledge.learning.learn import evidence_of
from knowledge.log.entry import Evidence
from knowledge.recall.ageing import OTHER_VERSIONS, Moment
from knowledge.recall.weighing import ESTIMATED, OTHER_DEVICE, OTHER_GENERATION, Place, lost, weighed, weight_of
from knowledge.records import Situation
from tests.knowledge.conftest import MakeOutcome

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
HERE = Place("hopper", "h200")
PRESENT = {"NVIDIA H200": {"torch": "2.13.0", "triton": "3.9.0", "driver": "570.86.15"}}


@pytest.fixture
def trial(make_outcome: MakeOutcome, situation: Situation) -> Evidence:
    """Measured today on an H200 with the present versions."""
    outcome = make_outcome(situation=situation.model_copy(update={"device": "h200"}), versions=PRESENT["NVIDIA H200"])
    return evidence_of(outcome, cited=True).model_copy(update={"at": NOW.isoformat()})


def with_versions(trial: Evidence, **versions: str) -> Evidence:
    """The same with other versions."""
    changed = trial.trial.model_copy(update={"versions": {**trial.trial.versions, **versions}})
    return trial.model_copy(update={"trial": changed})


def test_a_trial_of_today_weighs_one(trial: Evidence) -> None:
    """Nothing is taken, and nothing is said."""
    moment = Moment(NOW, PRESENT)
    assert weight_of(trial, HERE, moment) == 1.0
    assert weighed(trial, HERE, moment).reasons == ()
    assert lost([trial], HERE, moment) == ""


@pytest.mark.parametrize(
    ("versions", "said"),
    [
        ({"triton": "3.6.0"}, "triton 3.6 → 3.9"),
        ({"torch": "2.11.0+cu128"}, "torch 2.11 → 2.13"),
        ({"driver": "550.54"}, "driver 550 → 570"),
    ],
)
def test_other_versions_take_their_part_at_once_and_age_six_times_as_fast(trial: Evidence, versions: dict[str, str], said: str) -> None:
    """The reason names what changed."""
    stale = with_versions(trial, **versions)
    assert weight_of(stale, HERE, Moment(NOW, PRESENT)) == OTHER_VERSIONS
    assert weight_of(stale, HERE, Moment(NOW + timedelta(days=60), PRESENT)) == pytest.approx(OTHER_VERSIONS / 2)
    assert weighed(stale, HERE, Moment(NOW, PRESENT)).reasons == (said,)


@pytest.mark.parametrize("versions", [{"triton": "3.9.7"}, {"torch": "2.13.0+cpu"}, {"driver": "570.124.06"}])
def test_a_patch_release_takes_nothing(trial: Evidence, versions: dict[str, str]) -> None:
    """Builds of one release are taken for the same."""
    assert weight_of(with_versions(trial, **versions), HERE, Moment(NOW, PRESENT)) == 1.0


def test_other_hardware_takes_its_part(trial: Evidence) -> None:
    """Another device of the generation takes less than another generation; who asks about none in particular takes nothing."""
    moment = Moment(NOW, PRESENT)
    assert weight_of(trial, Place("hopper", "h100"), moment) == OTHER_DEVICE
    assert weight_of(trial, Place("ampere", "a100"), moment) == OTHER_GENERATION
    assert weight_of(trial, Place(), moment) == 1.0
    assert weighed(trial, Place("ampere", "a100"), moment).reasons == ("on hopper",)


def test_an_estimate_weighs_less(trial: Evidence) -> None:
    """What was not timed says so."""
    estimate = trial.model_copy(update={"trial": trial.trial.model_copy(update={"tier": "estimated"})})
    assert weighed(estimate, HERE, Moment(NOW, PRESENT)).model_dump()["weight"] == ESTIMATED
    assert weighed(estimate, HERE, Moment(NOW, PRESENT)).reasons == ("estimated",)


def test_the_half_life_is_a_setting(trial: Evidence) -> None:
    """Half is left after one, whatever its length; with 0 age takes nothing, and is not given as a reason."""
    later = NOW + timedelta(days=100)
    assert weight_of(trial, HERE, Moment(later, PRESENT, half_life=100)) == 0.5
    assert weighed(trial, HERE, Moment(later, PRESENT, half_life=100)).reasons == ("100 days old",)
    assert weighed(trial, HERE, Moment(later, PRESENT, half_life=0)).reasons == ()
    assert weight_of(trial, HERE, Moment(later, PRESENT, half_life=0)) == 1.0


def test_what_was_lost_is_one_phrase(trial: Evidence) -> None:
    """Age, versions and hardware of all trials, with what they leave."""
    trials = [trial, with_versions(trial, triton="3.6.0")]
    said = lost(trials, Place("hopper", "h100"), Moment(NOW + timedelta(days=60), PRESENT))
    assert said == "its 2 trials weigh 1.0: by age, 1 with other versions (triton 3.6 → 3.9), 2 on h200"
