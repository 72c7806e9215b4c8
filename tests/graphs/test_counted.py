"""Which candidates' hardware counters are read: each best one so far, once."""

from __future__ import annotations

import asyncio
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Literal

import pytest

from graphs.run.counted import counters_of_best, why_uncounted
from graphs.run.settings import RunSettings
from tests.support.makers import passed, problem, timing
from tools.errors import MachineError
from tools.evaluation import EvaluationRequest
from tools.hardware import load_sheet
from tools.profiling.ncu import Counters
from tools.profiling.profile import NOT_COUNTED
from tools.records import Figure, FigureSource, OperatorFamily
from tools.tracing import RunStore

ROWS = (1024, 1024)
RELU = problem((ROWS,), ROWS, operators=("aten.relu.default",), families=(OperatorFamily.POINTWISE,))


class CountingPool:
    """Counts nothing but how often it was asked."""

    def __init__(self) -> None:
        """Nobody has asked."""
        self.asked: list[str] = []

    async def counters(self, request: EvaluationRequest) -> Counters:
        """Answer with a note; a source that says so breaks the machine."""
        self.asked.append(request.candidate)
        await asyncio.sleep(0)
        if request.source == "broken":
            raise MachineError("The device is gone.", "Put it back.")
        return Counters(note=f"counted {request.candidate}")


def services(folder: Path, counters: Literal["auto", "never"] = "auto", left_s: float | None = None, left: int | None = None) -> Any:
    """As much of a run's services as counting needs: its settings, its store, its pool."""
    store = RunStore.create(folder / "run", {})
    known = {"settings": RunSettings(counters=counters), "store": store, "pool": CountingPool(), "judging": {}}
    return SimpleNamespace(run="r", time_left=lambda: left_s, evaluations_left=lambda: left, **known)


async def ask(services: Any, candidate: str, us: float | None, source: str = "") -> Counters:
    """Ask about a candidate of so many microseconds; None where it was not timed."""
    request = EvaluationRequest(problem=RELU, candidate=candidate, source=source or candidate, target=load_sheet("h200"))
    evaluation = passed(timing=timing(us)) if us else passed()
    return await counters_of_best(services, request, evaluation)


async def test_each_best_one_so_far_is_counted(tmp_path: Path) -> None:
    """The first and every faster one are asked about; one that is slower, or faster by noise, is not, and lacks nothing."""
    run = services(tmp_path)
    found = [await ask(run, name, us) for name, us in (("a", 100.0), ("b", 120.0), ("c", 99.5), ("d", 80.0))]

    assert run.pool.asked == ["a", "d"]
    assert [one.note for one in found] == ["counted a", "", "", "counted d"]


async def test_of_several_under_way_the_fastest_alone_is_counted(tmp_path: Path) -> None:
    """Who might be the best waits for those that are still judged: a faster one among them is counted in its stead."""
    run = services(tmp_path)
    sibling = run.judging["b"] = asyncio.Lock()
    async with sibling:
        first = asyncio.create_task(ask(run, "a", 100.0))
        await asyncio.sleep(0.01)
        assert run.pool.asked == []
        second = asyncio.create_task(ask(run, "b", 80.0))
        await asyncio.sleep(0.01)
    assert [(await one).note for one in (first, second)] == ["", "counted b"]


async def test_what_nobody_plans_on_is_not_counted(tmp_path: Path) -> None:
    """A text that no model will read costs the device nothing, and stands before no other."""
    run = services(tmp_path)
    request = EvaluationRequest(problem=RELU, candidate="text", source="text", target=load_sheet("h200"))
    assert await counters_of_best(run, request, passed(timing=timing(50.0)), is_planned_on=False) == NOT_COUNTED
    await ask(run, "a", 100.0)
    assert run.pool.asked == ["a"]


async def test_with_the_last_evaluation_spent_nothing_is_asked(tmp_path: Path) -> None:
    """Nothing can follow from what would be read; while evaluations are left, something can."""
    for left, asked in ((0, []), (1, ["a"])):
        run = services(tmp_path / str(left), left=left)
        await ask(run, "a", 100.0)
        assert run.pool.asked == asked


async def test_nobody_is_counted_twice(tmp_path: Path) -> None:
    """A node that runs again after a kill finds the counters in the store, and so do two plans that led to the same source."""
    run = services(tmp_path)
    assert await ask(run, "a", 100.0) == await ask(run, "a", 100.0)
    both = await asyncio.gather(ask(run, "b", 80.0), ask(run, "b", 80.0))
    assert [one.note for one in both] == ["counted b"] * 2
    assert run.pool.asked == ["a", "b"]


@pytest.mark.parametrize(("setting", "us"), [("never", 100.0), ("auto", None)])
async def test_switched_off_or_not_timed_nothing_is_asked(tmp_path: Path, setting: Literal["auto", "never"], us: float | None) -> None:
    """`never`, and an estimated candidate, start nothing."""
    run = services(tmp_path, setting)
    assert await ask(run, "a", us) == NOT_COUNTED
    assert run.pool.asked == []


async def test_a_machine_that_fails_at_it_ends_no_run(tmp_path: Path) -> None:
    """The failure is a note of the profile."""
    assert "The device is gone" in (await ask(services(tmp_path), "a", 100.0, "broken")).note


@pytest.mark.parametrize(
    ("setting", "us", "asked", "said"),
    [
        ("auto", 100.0, Counters(note="ncu is not installed."), "ncu is not installed."),
        ("auto", 100.0, Counters(figures=(Figure(name="stall_wait", value=1.0, unit="", source=FigureSource.COUNTERS),)), ""),
        ("auto", 100.0, None, "of each best candidate so far"),
        ("never", 100.0, None, "asked for no hardware counters"),
        ("auto", None, None, "where a candidate is timed"),
    ],
)
def test_it_is_said_why_a_candidate_has_no_counters(
    tmp_path: Path, setting: Literal["auto", "never"], us: float | None, asked: Counters | None, said: str
) -> None:
    """What the counting said, else whether it was asked for at all; nothing where there are counters."""
    store = services(tmp_path).store
    store.set_meta("settings", RunSettings(counters=setting).model_dump_json())
    store.put("evaluation", "a/1", passed(timing=timing(us)) if us else passed(), subject="a")
    if asked:
        store.put("counters", "key", asked, subject="a")
    found = why_uncounted(store, "a")
    assert (said in found) if said else found == ""


async def test_where_the_time_is_over_nothing_is_asked(tmp_path: Path) -> None:
    """What is left is for the confirmation."""
    run = services(tmp_path, left_s=0.0)
    assert await ask(run, "a", 100.0) == NOT_COUNTED
    assert run.pool.asked == []
