"""Operators that are worked on at once: who begins when, with how much time, and which of those that lie in one another stay."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Any

import pytest

from graphs.run.settings import RunSettings
from kernelwright.models.making import Making
from kernelwright.models.records import ModelSettings, OperatorOutcome, Outcome
from kernelwright.models.side_by_side import Lineup, Made, kept_apart
from kernelwright.models.work import Work
from tools.models.choosing.chosen import Chosen
from tools.models.packaging.delivered import Delivered
from tools.models.records import Capture, Group


def row(name: str, budget: int, *instead: str, share: float = 0.3) -> Chosen:
    """A group with its budget, and what may take its place."""
    figures = {"share": share, "us": 10.0, "eager_us": 0.0, "floor_us": 1.0, "reach_us": 1.0, "gain": 1.2}
    return Chosen(group=name, title=name, modules=1, calls=1, budget=budget, why_not="", instead=instead, **figures)


def group(name: str, path: str) -> Group:
    """A group of one module."""
    return Group.model_construct(name=name, title=name, paths=(path,), calls={"a": 1}, share=0.3)


def outcome(name: str, speedup: float = 0.0) -> OperatorOutcome:
    """What came of a group; one with a speed-up was delivered."""
    return OperatorOutcome(name=name, run="", reason="", delivered=bool(speedup), speedup=speedup)


def delivered(name: str) -> Delivered:
    """A kernel of a group that is only looked at by name."""
    return Delivered(group=group(name, name), trace=None, contract=None, kernel="", evidence=None)  # type: ignore[arg-type]  # names alone


class Maker:
    """Takes a moment for each operator, and delivers some."""

    def __init__(self, *good: str) -> None:
        self.good, self.begun, self.walls, self.at_once, self.now = good, [], {}, 0, 0  # type: ignore[var-annotated]  # plain lists

    async def __call__(self, one: Chosen, wall_s: float) -> Made:
        """Make one."""
        self.begun.append(one.group)
        self.walls[one.group] = wall_s
        self.now += 1
        self.at_once = max(self.at_once, self.now)
        await asyncio.sleep(0.01)
        self.now -= 1
        return outcome(one.group, 2.0 * (one.group in self.good)), delivered(one.group) if one.group in self.good else None


def worked(rows: list[Chosen], maker: Maker, jobs: int, minutes: float = 0.0) -> tuple[Lineup, list[dict[str, Any]]]:
    """See rows to their end."""
    lineup, told = Lineup(rows, ModelSettings(run=RunSettings(), minutes=minutes), jobs), []  # type: ignore[var-annotated]  # events
    asyncio.run(lineup.work(maker, lambda name: "", told.append))
    return lineup, told


def test_one_after_the_other_or_side_by_side() -> None:
    """As many as there are places, in the order of the table; each is told of when it begins and when it ends."""
    rows, alone, beside = [row(name, 2) for name in "abcd"], Maker(), Maker()
    worked(rows, alone, 1)
    _, told = worked(rows, beside, 3)
    assert (alone.at_once, beside.at_once) == (1, 3)
    assert alone.begun == beside.begun == list("abcd")
    assert [event["event"] for event in told].count("outcome") == 4


def test_what_lies_in_an_operator_waits_until_nothing_came_of_it() -> None:
    """With its evaluations, shared; it is not begun where the operator was delivered."""
    rows = [row("layer", 6, "norm", "mlp"), row("norm", 0), row("mlp", 0)]
    failed, fine = Maker(), Maker("layer")
    worked(rows, failed, 2)
    worked(rows, fine, 2)
    assert (failed.begun, fine.begun) == (["layer", "norm", "mlp"], ["layer"])


def test_a_free_place_goes_to_what_lies_in_an_operator_where_time_is_limited() -> None:
    """Time that passes would not come again; nothing is made twice."""
    rows, maker = [row("layer", 6, "norm", "mlp"), row("norm", 0), row("mlp", 0)], Maker()
    worked(rows, maker, 2, minutes=1.0)
    assert maker.begun == ["layer", "norm", "mlp"]
    assert maker.at_once == 2


def test_those_that_share_the_time_get_as_much_more_as_work_at_once() -> None:
    """Two places: each half of the evaluations may take all of the time."""
    maker = Maker()
    worked([row("a", 4), row("b", 4)], maker, 2, minutes=10.0)
    assert all(wall == pytest.approx(600.0, abs=1.0) for wall in maker.walls.values())


def test_a_mistake_ends_those_that_are_under_way() -> None:
    """Nothing goes on behind an error that is shown."""

    async def make(one: Chosen, wall_s: float) -> Made:
        if one.group == "bad":
            raise ZeroDivisionError
        await asyncio.sleep(60.0)
        raise AssertionError("it was not ended")

    began = time.monotonic()
    lineup = Lineup([row("slow", 2), row("bad", 2)], ModelSettings(run=RunSettings()), 2)
    with pytest.raises(ZeroDivisionError):
        asyncio.run(lineup.work(make, lambda name: "", lambda event: None))
    assert time.monotonic() - began < 30.0


@pytest.mark.parametrize(("speedup", "kept"), [(1.05, ["norm"]), (3.0, ["layer"])])
def test_of_operators_in_one_another_those_stay_that_save_more(speedup: float, kept: list[str]) -> None:
    """By measured speed-ups and shares; what goes is kept for later, and its outcome says why; others are left as they are."""
    groups = {"layer": group("layer", "layers.0"), "norm": group("norm", "layers.0.norm"), "head": group("head", "head")}
    rows = {"layer": row("layer", 4, share=0.8), "norm": row("norm", 2), "head": row("head", 2)}
    made = [
        (outcome("layer", speedup), delivered("layer")),
        (outcome("norm", 2.0), delivered("norm")),
        (outcome("head", 0.9), delivered("head")),
    ]
    outcomes, staying, spared = kept_apart(made, rows, groups)
    assert [one.group.name for one in staying] == [*kept, "head"]
    assert len(spared) == 1
    [gone] = [one for one in outcomes if one.taken_out]
    assert gone.taken_out == f"{kept[0]} is in its place, and saves more"


def test_what_was_spared_takes_the_place_of_what_is_taken_out(tmp_path: Path) -> None:
    """Without a run of its own; where the outer operator stays, it does not."""
    groups = (group("layer", "layers.0"), group("norm", "layers.0.norm"))
    captured = Capture.model_construct(title="M", groups=groups)
    outcomes = (outcome("layer", 3.0), outcome("norm", 2.0).model_copy(update={"taken_out": "layer is in its place, and saves more"}))
    begun = Outcome.model_construct(capture=captured, chosen=(row("layer", 4, "norm"), row("norm", 0)), operators=outcomes)
    making = Making(captured, ModelSettings(run=RunSettings()), tmp_path, lambda event: None, Work())
    making.spared["norm"] = delivered("norm")
    assert making.instead(begun) == (begun, ())
    gone = outcomes[0].model_copy(update={"taken_out": "the model is no faster with it"})
    found, back = making.instead(begun.model_copy(update={"operators": (gone, outcomes[1])}))
    assert [one.group.name for one in back] == ["norm"]
    assert [one.kept for one in found.operators] == [False, True]
