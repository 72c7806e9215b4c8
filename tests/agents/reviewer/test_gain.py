"""Gains and their intervals: drift cancels, noise widens, and what cannot be compared is not."""

from __future__ import annotations

import math
import random
import statistics

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agents.reviewer.gain import compare
from tests.agents.reviewer.cases import case, estimate, estimated_baselines, measured_baselines, passed, timing
from tools.records import Tier


def test_drift_between_sessions_cancels() -> None:
    """A machine that runs everything 30 % slower in the child's session gives the same gain."""
    parent = passed(timing(50.0))
    still = compare(case(passed(timing(40.0)), parent)).gain
    drifted = compare(case(passed(timing(52.0, eager_us=130.0, compile_us=104.0)), parent)).gain
    assert still is not None
    assert drifted is not None
    assert drifted.value == pytest.approx(still.value) == pytest.approx(1.25)
    assert drifted.low == pytest.approx(still.low)


def test_intervals_combine_as_logarithms() -> None:
    """Two independent half widths of 3 % and 4 % give one of about 5 %."""
    sides = [passed(timing(50.0, spread=spread)) for spread in (0.03, 0.04)]
    gain = compare(case(sides[0], sides[1])).gain
    assert gain is not None
    assert math.log(gain.high / gain.value) == pytest.approx(0.05, rel=0.03)
    assert math.log(gain.value / gain.low) == pytest.approx(0.05, rel=0.03)


def test_sessions_that_disagree_about_the_baselines_widen_the_interval() -> None:
    """Where compile over eager moved by 10 % between the sessions, a gain of 5 % is within the noise."""
    steady = compare(case(passed(timing(47.6)), passed(timing(50.0)))).gain
    restless = compare(case(passed(timing(47.6, compile_us=88.0)), passed(timing(50.0)))).gain
    assert steady is not None
    assert restless is not None
    assert steady.low > 1
    assert restless.low < 1


def test_the_reference_is_the_better_of_its_two_forms() -> None:
    """Against the reference a child is compared with torch.compile where that is faster, by its own session's interval."""
    compared = compare(case(passed(timing(50.0)), None))
    assert compared.gain is not None
    assert (compared.gain.value, compared.gain.low) == pytest.approx((1.6, 1.6 * 0.995))
    assert "compile" in compared.against


def test_only_one_baseline_is_a_concern() -> None:
    """Without a second baseline the sessions' own difference is not known, and that is said."""
    one = timing(40.0).model_copy(update={"baselines": {"eager": timing(40.0).baselines["eager"]}})
    compared = compare(case(passed(one), passed(one), baselines=estimated_baselines()))
    assert compared.gain is not None
    assert "Only one baseline" in compared.concerns[0]


def test_a_gain_counts_as_the_weaker_tier() -> None:
    """A bracketed parent and an in-process child, whose figures are both events, give an in-process gain and a concern."""
    compared = compare(case(passed(timing(40.0)), passed(timing(50.0, tier=Tier.BRACKETED))))
    assert compared.gain is not None
    assert compared.gain.tier == Tier.IN_PROCESS
    assert "bracketed" in compared.concerns[0]


def test_estimates_have_no_noise() -> None:
    """A deterministic model's gain is a point."""
    gain = compare(case(passed(estimate(40.0)), passed(estimate(50.0)), estimated_baselines())).gain
    assert gain is not None
    assert gain.value == gain.low == gain.high == 1.25
    assert gain.tier == Tier.ESTIMATED


@pytest.mark.parametrize(
    ("child", "parent", "why"),
    [
        (passed(timing(40.0)), passed(estimate(50.0)), "measured"),
        (passed(estimate(40.0)), passed(timing(50.0)), "estimated"),
        (passed(estimate(40.0)), None, "reference's is measured"),
        (passed(timing(40.0)), passed(timing(50.0, device="NVIDIA A100")), "NVIDIA A100"),
        (passed(timing(40.0)), passed(timing(50.0, speedups={"vendor": (2.0, 1.9, 2.1)})), "no baseline in common"),
        (passed(timing(40.0, speedups={})), None, "beside no baseline"),
        (passed(timing(40.0, spread=math.nan)), None, "not usable"),
        (passed(timing(40.0, spread=1.5)), passed(timing(50.0)), "not usable"),
        (passed(estimate(40.0, model="model 2")), passed(estimate(50.0)), "other models"),
        (passed(estimate(40.0, target="a100")), passed(estimate(50.0)), "other targets"),
        (passed(None), None, "neither timed nor estimated"),
    ],
)
def test_what_cannot_be_compared_is_not(child: object, parent: object, why: str) -> None:
    """Estimates beside measurements, other devices, models or baselines, broken intervals: no gain, and a sentence that says why."""
    compared = compare(case(child, parent))  # type: ignore[arg-type]
    assert compared.gain is None
    assert why in compared.against


@settings(deadline=None)
@given(st.floats(1.0, 1e4), st.floats(1.0, 1e4), st.floats(0, 0.3), st.floats(0, 0.3))
def test_an_interval_holds_its_value(child_us: float, parent_us: float, one: float, other: float) -> None:
    """Whatever the spreads, low ≤ value ≤ high, and swapping child and parent inverts the gain."""
    child, parent = passed(timing(child_us, spread=one)), passed(timing(parent_us, spread=other))
    gain, inverse = compare(case(child, parent)).gain, compare(case(parent, child)).gain
    assert gain is not None
    assert inverse is not None
    assert gain.low <= gain.value <= gain.high
    assert gain.value * inverse.value == pytest.approx(1.0)


def test_the_same_against_the_same_is_rarely_a_win() -> None:
    """Of 400 simulated pairs of one kernel, each session shifting every time by 1 %, fewer than 5 % look like wins.

    The shift is not in the sessions' own bootstrap intervals: without the baselines' control about four in ten would be.
    """
    chance = random.Random(2026)
    wins = sum(_simulated_win(chance) for _ in range(400))
    assert wins < 20


def _simulated_win(chance: random.Random) -> bool:
    """Time one kernel twice; medians of 30 times with 0.5 % noise, and a shift of 1 % for each kernel and session."""
    sessions = [_session(chance) for _ in range(3)]
    child, parent, base = sessions
    baselines = measured_baselines(base["eager"], base["compile"])
    gain = compare(case(passed(_timed(child)), passed(_timed(parent)), baselines)).gain
    assert gain is not None
    return gain.low > 1


def _session(chance: random.Random) -> dict[str, float]:
    true = {"candidate": 50.0, "eager": 100.0, "compile": 80.0}
    shifted = {name: us * chance.gauss(1, 0.01) for name, us in true.items()}
    return {name: statistics.median(chance.gauss(us, 0.005 * us) for _ in range(30)) for name, us in shifted.items()}


def _timed(session: dict[str, float]) -> object:
    # the half width that a bootstrap finds for a ratio of two such medians
    spread = 1.96 * 1.25 * 0.005 * math.sqrt(2 / 30)
    return timing(session["candidate"], session["eager"], session["compile"], spread=spread)
