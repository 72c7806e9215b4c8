"""Values that kernels hand to one another are made again instead, where that reads no more; readers of one tensor share a kernel."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.breadth import unlike
from tests.tools.codegen.harness import made_once, run_worker, traced_text, write_job
from tests.tools.codegen.samples import function
from tools.codegen import Schedule, emit, initial_schedule
from tools.codegen.ir.graph import OperatorGraph
from tools.codegen.rewrite.bind import bind
from tools.codegen.schedule.options import options
from tools.codegen.schedule.recompute import recomputable
from tools.cost.rank_schedules import modelled_choices
from tools.hardware import load_sheet
from tools.records import DEFAULT_POLICY

SHEET = load_sheet("h100")
LARGE = "torch.randn(1024, 2048)"
SAMPLES = {
    "both directions": function("(lambda u: (u.sum(0), u.mean(1)))(x.square() + 1)", LARGE),
    "rotated twice": function(
        "(lambda u: (torch.cat((x * u, x + u), -1), torch.cat((w * u, w - u), -1)))(z[y][:, None])",
        "torch.randn(2048, 3, 32), torch.randint(0, 512, (2048,)), torch.randn(512, 32), torch.randn(2048, 1, 32)",
        "x, y, z, w",
    ),
    "distances": function(
        "(lambda r: ((y * r[..., None]).sum(1), (r * z).sum(0)))(((x[:, None] - x[None]) ** 2).sum(-1).add(0.5).rsqrt())",
        "torch.randn(512, 3), torch.randn(512, 3), torch.randn(512)",
        "x, y, z",
    ),
    "scaled and summed": function(
        "(lambda u: (u.sum(0), u / u.square().mean(1, keepdim=True)))(x * y[:, None] - 1)", f"{LARGE}, torch.randn(1024)", "x, y"
    ),
}

RUN = unlike(SAMPLES, {"both directions"})
"""Both directions are a part of those that are scaled and summed."""


def rewritten(name: str) -> tuple[OperatorGraph, OperatorGraph, Schedule]:
    """The graph of a sample, the same with its copies, and the rewriting."""
    _, graph = traced_text(SAMPLES[name], name)
    rewriting = Schedule(regions=(), recomputed=recomputable(graph))
    return graph, bind(graph, rewriting).rewritten, rewriting


def handed_over(graph: OperatorGraph) -> set[str]:
    """Name the values that one natural region makes and another reads."""
    home = {name: region.id for region in initial_schedule(graph).regions for name in region.nodes}
    made = {ref.name: node.name for node in graph.nodes for ref in node.refs if node.name in home}
    return {source for source, user in made.items() if source in home and home[source] != home[user]}


@pytest.mark.parametrize("name", ["both directions", "rotated twice", "distances"])
def test_no_large_value_passes_from_kernel_to_kernel(name: str) -> None:
    """What sums in both directions and two rotations share is made in each of their kernels."""
    before, after, _ = rewritten(name)
    assert handed_over(before)
    assert not handed_over(after)


def test_a_graph_that_has_its_copies_stays_as_it_is() -> None:
    """Binding twice makes no second copy."""
    _, after, rewriting = rewritten("both directions")
    assert bind(after, rewriting).rewritten.nodes == after.nodes


@pytest.mark.parametrize(
    ("body", "inputs"),
    [("(x.sum(0), (x * 2).sum(1))", LARGE), ("(lambda u: (u @ u, u.sum(0)))(x + 1)", "torch.randn(1024, 1024)")],
    ids=["nothing shared", "a product reads it"],
)
def test_what_is_written_anyway_is_not_made_again(body: str, inputs: str) -> None:
    """A value that a library's product reads is written for that; then the others read it, too."""
    assert recomputable(traced_text(function(body, inputs), "plain")[1]) == ()


def test_what_is_made_of_more_than_it_is_is_not_made_again() -> None:
    """A sum of four tensors is read as one."""
    text = function("(lambda u: (u.sum(0), u.sum(1)))(x + y + z + w)", ", ".join([LARGE] * 4), "x, y, z, w")
    assert recomputable(traced_text(text, "wide")[1]) == ()


def test_a_small_gather_is_made_again_for_what_it_keeps_apart() -> None:
    """A table read once for two rotations of larger tensors is a hundredth of what they write, and still parts their kernels."""
    _, after, _ = rewritten("rotated twice")
    assert [len(region.nodes) for region in initial_schedule(after).regions] == [4, 4]


def test_readers_of_one_tensor_share_a_kernel() -> None:
    """Two results of one shape that read the same tensor are one region, so that it is read once; of other shapes they are two."""
    one = traced_text(function("(torch.sign(x) + y, x * 0.9 + 1)", f"{LARGE}, {LARGE}", "x, y"), "optimiser")[1]
    two = traced_text(function("(torch.sign(x), x.sum(0) * 2)", LARGE), "two")[1]
    assert len(initial_schedule(one).regions) == 1
    assert len(initial_schedule(two).regions) == 2


def test_sums_along_the_same_rows_of_one_tensor_share_a_kernel() -> None:
    """Scores of a node as source and as target read its features once; sums along other rows are two kernels."""
    scores = traced_text(
        function("((x * y).sum(-1), (x * z).sum(-1))", f"{LARGE}, torch.randn(2048), torch.randn(2048)", "x, y, z"), "scores"
    )[1]
    turned = traced_text(function("((x * y).sum(-1), (x * y * 2).sum(0))", f"{LARGE}, torch.randn(2048)", "x, y"), "turned")[1]
    assert [len(region.nodes) for region in initial_schedule(scores).regions] == [4]
    assert len(initial_schedule(turned).regions) > 1


def test_the_cost_model_takes_copies_where_they_save_memory_traffic() -> None:
    """The first choice of sums in both directions reads its input twice and writes no tensor of its size."""
    first = modelled_choices(traced_text(SAMPLES["both directions"], "both")[1], SHEET, DEFAULT_POLICY)[0]
    assert first.schedule.recomputed
    assert "recomputed values" in first.words


def test_actions_apply_to_a_schedule_with_copies() -> None:
    """Every option of such a choice names regions and values that exist."""
    _, graph = traced_text(SAMPLES["scaled and summed"], "scaled")
    chosen = [choice.schedule for choice in modelled_choices(graph, SHEET, DEFAULT_POLICY) if choice.schedule.recomputed]
    assert chosen
    assert options(graph, chosen[0], SHEET)


@pytest.fixture(scope="session")
def results(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """Run every sample with its copies in one process."""
    return made_once(tmp_path_factory, "recomputed", _results)


def _results(folder: Path) -> dict[str, dict[str, Any]]:
    jobs = []
    for name in RUN:
        text = SAMPLES[name]
        problem, graph = traced_text(
            text.replace("1024, 2048", "33, 70").replace("2048", "19").replace("1024", "33"), name.replace(" ", "_")
        )
        _, large = traced_text(text, name)
        choice = next(each.schedule for each in modelled_choices(large, SHEET, DEFAULT_POLICY) if each.schedule.recomputed)
        jobs.append(write_job(folder, name.replace(" ", "_"), problem, emit(problem, graph, choice).source))
    return dict(zip(RUN, run_worker("interpreter_worker.py", jobs, interpret=True), strict=True))


@pytest.mark.parametrize("name", RUN)
def test_kernels_with_copies_match_float64(results: Any, name: str) -> None:
    """The kernels of a choice with copies are as accurate as the reference."""
    assert "crash" not in results[name], results[name]["crash"]
    assert results[name]["error"] <= 1.0
