"""Pieces of a concatenation that convolutions write into their places: right at other sizes, and nothing else is copied."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.tools.codegen.compute_samples import module
from tests.tools.codegen.harness import run_worker, small, traced_text, unseen, write_job
from tools.codegen import emit
from tools.codegen.ir.schedule import Schedule
from tools.codegen.rewrite.bind import bind
from tools.codegen.rewrite.images.joined_in_place import joinable_in_place, with_joined_in_place
from tools.codegen.schedule.placed import regions_of_places, writes_place
from tools.codegen.schedule.plan import plan_region
from tools.cost.rank_schedules import modelled_choices
from tools.hardware import load_sheet
from tools.records import DEFAULT_POLICY

LAYERS = "self.a = torch.nn.Conv2d(c, 6, 1); self.b = torch.nn.Conv2d(c, 10, 3, padding=1); self.d = torch.nn.Conv2d(c, 2 * c, 1)"
SAMPLES = {
    "branches": module(LAYERS, "return torch.cat([torch.relu(self.a(x)), self.b(x) * 2, self.d(x)], 1)", "torch.randn(3, 8, 9, 10)"),
    "onward": module(
        f"{LAYERS}; self.e = torch.nn.Conv2d(16 + 2 * c, 5, 3)",
        "y = torch.relu(self.e(torch.cat([self.d(x), torch.relu(self.b(x)), self.a(x)], 1))); return y, y.mean((2, 3))",
        "torch.randn(2, 8, 7, 9)",
    ),
    "volume": module(
        "self.a = torch.nn.Conv3d(c, 6, 1); self.b = torch.nn.Conv3d(c, 4, 3, padding=1)",
        "return torch.cat([torch.sigmoid(self.a(x)), self.b(x)], 1)",
        "torch.randn(2, 8, 3, 4, 5)",
    ),
}


def in_place(source: str) -> tuple[Any, Any, Schedule]:
    """Trace a reference and generate the pieces of its concatenations in their places, the rest left to the library."""
    problem, graph = traced_text(source)
    names = joinable_in_place(graph)
    changed = with_joined_in_place(graph, names)
    regions = []
    for region in regions_of_places(changed).regions:
        planned = plan_region(changed, region.nodes) if writes_place(changed, region) else None
        update = {"template": planned.template.name, "parameters": planned.defaults(132)} if planned else {}
        regions.append(region.model_copy(update=update))
    return problem, graph, Schedule(regions=tuple(regions), joined_in_place=names)


@pytest.mark.slow
def test_pieces_in_their_places_match_float64(tmp_path: Path) -> None:
    """Results are as accurate as the reference's within a factor of four, at sizes that no trace saw."""
    jobs = []
    for name, source in SAMPLES.items():
        problem, graph, schedule = in_place(source)
        jobs.append(write_job(tmp_path, name, unseen(small(source)), emit(problem, graph, schedule).source))
    for name, result in zip(SAMPLES, run_worker("interpreter_worker.py", jobs, interpret=True), strict=True):
        assert "crash" not in result, (name, result["crash"])
        assert result["error"] <= 1.0, (name, result)


def test_each_piece_is_written_by_its_convolution() -> None:
    """The first kernel's host makes the whole, the others are given it; nothing lays pieces one after the other."""
    problem, graph, schedule = in_place(SAMPLES["branches"])
    source = emit(problem, graph, schedule).source
    assert [region.template for region in schedule.regions] == ["convolution"] * 3
    assert source.count("_whole = torch.empty(") == 1
    assert source.count(".narrow(1, ") == 3
    assert "torch.cat" not in source


def test_the_cost_model_names_it_where_the_result_is_large() -> None:
    """A concatenation whose pieces are much larger than what they are made of is written in place first."""
    layers = "self.a = torch.nn.Conv2d(c, 64, 1); self.b = torch.nn.Conv2d(c, 64, 3, padding=1)"
    forward = "return torch.cat([torch.relu(self.a(x)), torch.relu(self.b(x))], 1)"
    _, graph = traced_text(module(layers, forward, "torch.randn(64, 8, 128, 128)"))
    first = modelled_choices(graph, load_sheet("h100"), DEFAULT_POLICY, 2)[0]
    assert first.schedule.joined_in_place == ("cat",)
    changed = bind(graph, first.schedule).rewritten
    assert all(region.is_generated for region in first.schedule.regions if writes_place(changed, region))


@pytest.mark.parametrize(
    "body",
    [
        "torch.cat([self.a(x), x], 1)",
        "torch.cat([self.a(x)[:, :2], self.b(x)], 1)",
        "torch.cat([self.a(x), self.b(x)[:, :6]], 2)",
        "(lambda y: (torch.cat([y, self.b(x)], 1), y))(self.a(x))",
        "(lambda y: torch.cat([y, y], 1))(self.a(x))",
    ],
    ids=["no convolution", "a slice", "other dimension", "returned too", "twice"],
)
def test_other_concatenations_stay(body: str) -> None:
    """A piece that is no convolution's alone, or a join along positions, is laid out as before."""
    _, graph = traced_text(module(LAYERS, f"return {body}", "torch.randn(3, 8, 9, 10)"))
    assert not joinable_in_place(graph)


def test_pieces_stay_whose_places_nothing_tells() -> None:
    """Where channels are arguments of the constructor, and no sum of two sizes is where a piece begins, nothing is written in place."""
    convolutions = "; ".join(f"self.{name} = torch.nn.Conv2d(b, {name}, 1)" for name in "cdef")
    source = module(convolutions, "return torch.cat([self.c(x), self.d(x), self.e(x), self.f(x)], 1)", "torch.randn(3, B, 9, 10)")
    source = source.replace("def __init__(self, c)", "def __init__(self, b, c, d, e, f)").replace("return [8]", "return [B, C, D, E, F]")
    _, graph = traced_text(source.replace("class Model", "B = 8\nC = 192\nD = 208\nE = 48\nF = 64\n\n\nclass Model"))
    assert not joinable_in_place(graph)
