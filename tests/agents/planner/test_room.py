"""Where nothing is left to gain, nothing is planned, and the reason is said in words."""

from __future__ import annotations

import pytest

from agents.planner.builtin import BuiltinPlanner
from agents.planner.room import no_room
from agents.samples import case as samples
from tools.hardware import load_sheet
from tools.records import ROOT, Bottleneck, Figure, FigureSource, Profile

SHEET = load_sheet("h200")
EVENTS, MODEL, STATIC = FigureSource.EVENTS, FigureSource.MODEL, FigureSource.STATIC


def profiled(
    times: dict[str, float], candidate: str = ROOT, floor: float = 2684.0, source: FigureSource = EVENTS, target: str = "h200"
) -> Profile:
    """A profile of what reads and writes 12.88 GB, such as a tanh of 1.6 billion elements."""
    figures = [Figure(name=f"{name}_us", value=value, unit="us", source=source) for name, value in times.items()]
    figures.append(Figure(name="compulsory_bytes", value=12_884_901_888, unit="bytes", source=STATIC))
    figures.append(Figure(name="floor_us", value=floor, unit="us", source=MODEL))
    figures.append(Figure(name="floor_share", value=floor / times["time"], unit="ratio", source=MODEL))
    return Profile(
        candidate=candidate, target=target, figures=tuple(figures), bottleneck=Bottleneck.DRAM_BANDWIDTH, evidence="Near a copy."
    )


async def test_a_reference_at_the_copy_rate_gets_no_plan() -> None:
    """Eager execution in 3,030 µs moves 12.9 GB at 99 % of the copy rate: no plan, and a sentence with these figures."""
    full = profiled({"time": 3030.0, "eager": 3030.0, "compile": 3031.0})
    assert await BuiltinPlanner().plan(samples.briefing(profile=full), 3) == ()
    assert no_room(full, SHEET) == (
        "eager takes 3030 µs, and 99% of that is what its compulsory 12.9 GB take at the 4300 GB/s of a copy: nothing is left to gain"
    )


async def test_the_better_baseline_counts() -> None:
    """Where eager is slow and torch.compile at the copy rate, the reference has no room either."""
    full = profiled({"time": 6000.0, "eager": 6000.0, "compile": 3050.0})
    assert await BuiltinPlanner().plan(samples.briefing(profile=full), 3) == ()
    assert no_room(full, SHEET).startswith("compile takes 3050 µs")


async def test_held_against_eager_alone_a_slow_eager_leaves_room() -> None:
    """Who compiles nothing gains by a kernel at the copy rate, however fast torch.compile is."""
    full = profiled({"time": 6000.0, "eager": 6000.0, "compile": 3050.0})
    assert no_room(full, SHEET, "eager") == ""
    assert await BuiltinPlanner().plan(samples.briefing(profile=full, against="eager"), 3)


async def test_a_candidate_is_held_against_its_own_time() -> None:
    """A candidate at the copy rate has no room; one that is slow has, however fast its baselines are."""
    fast, slow = (profiled({"time": time, "compile": 3050.0}, candidate="c1") for time in (3050.0, 3500.0))
    assert await BuiltinPlanner().plan(samples.briefing(profile=fast), 3) == ()
    assert no_room(fast, SHEET).startswith("it takes 3050 µs")
    assert await BuiltinPlanner().plan(samples.briefing(profile=slow), 3)
    assert no_room(slow, SHEET) == ""


async def test_three_percent_are_room() -> None:
    """At 96 % of the copy rate there is something to gain."""
    near = profiled({"time": 3120.0, "eager": 3120.0})
    assert await BuiltinPlanner().plan(samples.briefing(profile=near), 3)
    assert no_room(near, SHEET) == ""


def test_the_roofline_counts_where_it_is_longer() -> None:
    """A product at 98 % of its floor has no room, though its bytes take little."""
    assert "the roofline of NVIDIA H200 leaves" in no_room(profiled({"time": 5000.0, "eager": 5000.0}, floor=4900.0), SHEET)


@pytest.mark.parametrize("unknown", [{"source": MODEL}, {"target": "h100"}])
async def test_what_was_not_measured_here_ends_nothing(unknown: dict[str, str]) -> None:
    """An estimated time, or one of another device, is no reason to stop."""
    guessed = profiled({"time": 3030.0, "eager": 3030.0}, **unknown)  # type: ignore[arg-type]
    assert no_room(guessed, SHEET) == ""
    assert await BuiltinPlanner().plan(samples.briefing(profile=guessed), 3)


async def test_a_candidate_that_does_less_than_the_reference_goes_on() -> None:
    """Far below the reference's floor, by algebra or with packed weights, nothing is known of what is left: planning goes on."""
    less = profiled({"time": 600.0, "compile": 3050.0}, candidate="c1")
    assert no_room(less, SHEET) == ""
    assert await BuiltinPlanner().plan(samples.briefing(profile=less), 3)
