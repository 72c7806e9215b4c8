"""Medians, intervals, and whether a time can be believed."""

from __future__ import annotations

import numpy as np
import pytest

from tools.evaluation.supervisor.timed.chains import calls_in
from tools.evaluation.supervisor.timed.plausibility import (
    charged_us,
    hidden_us,
    idle_excess_us,
    is_impossible,
    left_behind_us,
    left_out,
    sabotage,
    slowed_down,
    steady,
    tier,
)
from tools.evaluation.supervisor.timed.statistics import enough, repetitions, sample, speedup
from tools.hardware import load_sheet
from tools.records import Problem, Tier


def noisy(median: float, count: int = 60, seed: int = 0) -> list[float]:
    """Times around a median."""
    return list(median * np.random.default_rng(seed).lognormal(0.0, 0.02, count))


def test_sample_has_median_and_quartiles() -> None:
    """A sample holds the median, the quartiles and the count."""
    found = sample([5.0, 1.0, 2.0, 3.0, 4.0])

    assert (found.low_us, found.median_us, found.high_us, found.count) == (2.0, 3.0, 4.0, 5)


def test_speedup_interval_holds_the_ratio() -> None:
    """The interval lies around the ratio of medians and is repeatable."""
    ratio, low, high = speedup(noisy(20.0), noisy(10.0, seed=1))

    assert low < ratio < high
    assert ratio == pytest.approx(2.0, rel=0.02)
    assert high - low < 0.1
    assert (ratio, low, high) == speedup(noisy(20.0), noisy(10.0, seed=1))


@pytest.mark.parametrize("seed", range(10))
def test_same_against_same_is_no_win(seed: int) -> None:
    """Two samples of one thing give an interval that holds 1, in nearly all of many tries."""
    _, low, high = speedup(noisy(10.0, seed=seed), noisy(10.0, seed=seed + 100))

    assert low < 1.02
    assert high > 0.98


def test_tier_is_bracketed_only_where_the_clock_confirms() -> None:
    """Events within five per cent or 3 µs of what chains show make it bracketed; shorter ones, or none, in-process."""
    assert tier([960.0], [1000.0]) is Tier.BRACKETED
    assert tier([940.0], [1000.0]) is Tier.IN_PROCESS
    assert tier([5.0], [7.9]) is Tier.BRACKETED
    assert tier([5.0], [8.1]) is Tier.IN_PROCESS
    assert tier([960.0], []) is Tier.IN_PROCESS


def test_what_every_chain_shows_is_hidden() -> None:
    """Work outside of the events is in the fastest chain too; a chain that noise made slow says nothing."""
    assert hidden_us(noisy(50.0), [1050.0, 1060.0, 1900.0]) == pytest.approx(1000.0, rel=0.01)
    assert hidden_us(noisy(50.0), [50.5, 1060.0, 1900.0]) == 0.0


def test_what_the_clock_outside_has_beyond_the_events_is_charged() -> None:
    """A short kernel whose events say half is allowed 3 µs, and gets its time all the same; one that chains confirm gets no less."""
    assert charged_us([2.0] * 9, [3.9, 4.0, 4.1]) == pytest.approx(2.0)
    assert charged_us([34.0] * 9, [31.8, 32.0]) == 0.0
    assert charged_us([34.0] * 9, []) == 0.0


def test_more_work_on_an_idle_device_is_told() -> None:
    """A call that finds nothing before it on the device takes no longer than others, but for what a first launch takes."""
    assert idle_excess_us([50.0] * 9, [550.0, 560.0]) == pytest.approx(500.0)
    assert idle_excess_us([5.0] * 9, [12.0, 90.0]) == 0.0
    assert idle_excess_us([5.0] * 9, [-20.0, 12.0]) == 0.0


def test_streams_that_work_on_after_the_last_call_are_told() -> None:
    """A tail beyond what a process needs to say that it has ended is work in flight, unless one chain had none."""
    assert left_behind_us(noisy(50.0), [900.0, 1000.0], 32) == pytest.approx(900.0)
    assert left_behind_us(noisy(50.0), [90.0, 1000.0], 32) == 0.0
    assert left_behind_us(noisy(5000.0), [400.0], 2) == 0.0


@pytest.mark.parametrize(("event_us", "calls"), [(5.0, 32), (50.0, 32), (500.0, 5), (5000.0, 2)])
def test_a_chain_is_as_long_as_the_clock_needs(event_us: float, calls: int) -> None:
    """What all its calls are allowed together is at least what the clock may be off by, within the most and the least."""
    assert calls_in(event_us) == calls


@pytest.mark.parametrize(
    ("skipped_us", "judged_us", "told"),
    [(2000.0, [10000.0, 10100.0], True), (2000.0, [10000.0, 2000.0], False), (9800.0, [10000.0, 10400.0], False), (3.0, [7.0, 7.5], False)],
    ids=["left out", "one was slow", "ordinary", "short"],
)
def test_work_left_out_of_the_calls_that_nobody_judged_is_told(skipped_us: float, judged_us: list[float], told: bool) -> None:
    """Whoever skips calls and is lucky worked in every judged one: even the fastest of those is far above the median."""
    assert bool(left_out([*noisy(skipped_us, 38), *judged_us], judged_us)) is told


def test_time_below_what_memory_allows_is_impossible(problem: Problem) -> None:
    """A large problem cannot be faster than reading its inputs once."""
    sheet = load_sheet("h200")
    matrix = {"shape": (1 << 15, 1 << 15)}
    tensors = (problem.abi.inputs[0].model_copy(update=matrix),), (problem.abi.outputs[0].model_copy(update=matrix),)
    large = problem.abi.model_copy(update={"arguments": tensors[0], "outputs": tensors[1]})
    work = problem.work.model_copy(update={"eager_bytes": 2 << 32})
    big = problem.model_copy(update={"abi": large, "work": work})

    assert is_impossible(100.0, big, sheet)
    assert not is_impossible(2000.0, big, sheet)
    assert is_impossible(float("nan"), big, sheet)


def test_parameters_that_are_packed_need_not_be_read(problem: Problem) -> None:
    """A kernel whose packing is timed by itself may take less time than reading the parameters, but not less than reading the inputs."""
    sheet = load_sheet("h200")
    large = problem.abi.inputs[0].model_copy(update={"shape": (1 << 15, 1 << 15)})
    work = problem.work.model_copy(update={"eager_bytes": 4 << 32})
    weighed = problem.model_copy(update={"abi": problem.abi.model_copy(update={"parameters": (large,)}), "work": work})
    given = problem.model_copy(update={"abi": problem.abi.model_copy(update={"arguments": (large,)}), "work": work})
    assert is_impossible(100.0, weighed, sheet)
    assert not is_impossible(100.0, weighed, sheet, packs=True)
    assert is_impossible(100.0, given, sheet, packs=True)
    assert is_impossible(0.0, weighed, sheet, packs=True)


def test_a_small_problem_has_no_impossible_time(problem: Problem) -> None:
    """What fits into the L2 proves nothing."""
    sheet = load_sheet("h200")
    assert not is_impossible(1.0, problem, sheet)


def test_repetitions_follow_the_reference_within_bounds() -> None:
    """A slow reference is timed fewer times than a fast one, a confirmation more often."""
    assert repetitions("search", 1e6) == 15
    assert repetitions("search", 5.0) == 60
    assert repetitions("confirm", 5.0) == 200


def test_zero_is_impossible_whatever_the_problem(problem: Problem) -> None:
    """A median of zero is refused even where a problem need not read its inputs."""
    idle = problem.model_copy(update={"work": problem.work.model_copy(update={"operators": ("aten.embedding.default",)})})

    assert is_impossible(0.0, idle, load_sheet("h200"))


@pytest.mark.parametrize(
    ("beside", "before", "after", "told"),
    [
        (110.0, 100.0, 100.0, False),
        (120.0, 100.0, 100.0, True),
        (8.0, 4.0, 4.0, False),
        (110.0, 90.0, 104.0, False),
        (185.0, 100.0, 160.0, True),
    ],
    ids=["ordinary", "burnt", "short", "drift", "burnt and heated"],
)
def test_a_baseline_that_is_slower_beside_the_candidate_is_told(beside: float, before: float, after: float, told: bool) -> None:
    """More than 15 % above the slower of the times without the candidate is sabotage; 5 µs are noise."""
    assert (slowed_down(noisy(beside), noisy(before, 9), noisy(after, 9)) > 0) is told


@pytest.mark.parametrize(
    ("beside", "before", "after", "counts"),
    [(110.0, 100.0, 100.0, 110.0), (145.0, 100.0, 140.0, 145.0), (160.0, 100.0, 160.0, 100.0), (1110.0, 1223.0, 405.0, 405.0)],
    ids=["ordinary", "drift", "heated", "busy host"],
)
def test_a_baseline_that_is_unsteady_by_itself_counts_as_what_it_is_at_best(
    beside: float, before: float, after: float, counts: float
) -> None:
    """Half above the faster of its times alone: nobody gains by a device or a host that was made slow, and no right kernel is refused."""
    chosen, said = steady("compile", [beside] * 9, [before] * 9, [after] * 9)
    assert list(chosen) == [counts] * 9
    assert ("unsteady" in said) is (counts != beside)


def test_sabotage_is_said_with_its_figures() -> None:
    """The sentence names the baseline and its three medians."""
    found = sabotage(
        {"eager": [50.0] * 9, "compile": [200.0] * 9}, {"eager": [50.0], "compile": [100.0]}, {"eager": [50.0], "compile": [101.0]}
    )
    said = found["compile"]

    assert list(found) == ["compile"]
    assert said.startswith("The compile baseline took 200 µs beside the candidate, 2.00 times")
    assert "100 µs before, 101 µs after" in said


def test_what_takes_twice_as_long_as_another_is_no_rival() -> None:
    """By the faster of its times alone: what a candidate does to it while it runs makes it none."""
    alone, beside = {"eager": [190.0], "compile": [100.0]}, {"eager": [500.0], "compile": [100.0]}
    assert list(sabotage(beside, alone, alone)) == ["eager"]
    assert not sabotage(beside, alone | {"eager": [210.0]}, alone | {"eager": [240.0]})
    assert list(sabotage(beside, alone, alone | {"eager": [240.0]})) == ["eager"]


def test_a_quiet_device_is_asked_less_often() -> None:
    """The number of calls follows from the noise of the baselines alone, between the bounds of the stage."""
    quiet = {"eager": [100.0, 100.1] * 4, "compile": [50.0, 50.1] * 4}
    noisy = quiet | {"compile": [50.0, 52.0] * 4}
    assert enough("search", 60, quiet) == 15
    assert enough("confirm", 200, quiet) == 40
    assert enough("search", 60, noisy) == 60
    assert 40 < enough("confirm", 200, {"eager": [100.0, 101.5] * 4}) < 200


def test_too_little_is_known_of_what_was_seldom_called() -> None:
    """Of a slow reference, which is called a few times, nobody can say how quiet it is: the number stays."""
    assert enough("search", 15, {"eager": [100.0, 100.0, 100.0]}) == 15
    assert enough("confirm", 50, {"eager": [100.0] * 7}) == 50
