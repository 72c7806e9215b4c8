"""A sum taken before the product that feeds it: found where it may be, right at every padding, and compiled."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import pytest

from tests.tools.codegen.compute_samples import module
from tests.tools.codegen.harness import for_targets, made_once, problem_of, run_worker, small, trace_problem, traced_text, unseen, write_job
from tests.tools.codegen.samples import function
from tools.codegen import IllegalAction, apply, emit, initial_schedule, options
from tools.codegen.rewrite.bind import bind
from tools.codegen.rewrite.pushdown.products import reduction_pushdowns
from tools.cost.rank_schedules import modelled_choices
from tools.hardware import load_sheet
from tools.records import DEFAULT_POLICY, Action, ActionKind

MATRICES = "torch.randn(ROWS, COLS), torch.randn(COLS, ROWS), torch.randn(ROWS)"
SAMPLES: dict[str, str] = {
    "linear": module("self.l = torch.nn.Linear(c, 20)", "return torch.sum(self.l(x) / 2 + 1, 1, keepdim=True) * 1.5", "torch.randn(5, 8)"),
    "rows": module("self.l = torch.nn.Linear(c, 20)", "return torch.relu(self.l(x).sum(1))", "torch.randn(3, 5, 8)"),
    "columns": function("(x @ y - b).mean(-1)", MATRICES, "x, y, b"),
    "batched": function("torch.bmm(x, y).sum(1) + 1", "torch.randn(4, ROWS, COLS), torch.randn(4, COLS, ROWS)", "x, y"),
    "depth": module(
        "self.c = torch.nn.ConvTranspose3d(c, 6, 3, stride=2, padding=1)",
        "return torch.tanh(self.c(x).mean(dim=2))",
        "torch.randn(2, 8, 4, 5, 6)",
    ),
    "positions": module(
        "self.c = torch.nn.ConvTranspose2d(c, 6, (3, 4), stride=(2, 1), padding=(1, 2), output_padding=(1, 0), dilation=(1, 3))",
        "return (self.c(x) * 3).mean(dim=[2, 3], keepdim=True) - 1",
        "torch.randn(2, 8, 9, 13)",
    ),
    "plain": module("self.c = torch.nn.Conv2d(c, 6, 3, padding=(2, 0))", "return self.c(x).sum((2, 3))", "torch.randn(2, 8, 9, 7)"),
    "line": module("self.c = torch.nn.Conv1d(c, 6, 5, dilation=2, bias=False)", "return self.c(x).sum(2)", "torch.randn(2, 8, 19)"),
    "pooled": module(
        "self.c = torch.nn.Conv2d(c, 12, 1)",
        "return F.avg_pool2d(self.c(torch.relu(x)), 3, 2, padding=1, count_include_pad=False)",
        "torch.randn(2, 8, 9, 11)",
    ),
    "adaptive": module(
        "self.c = torch.nn.Conv2d(c, 6, 1, bias=False)", "return F.adaptive_avg_pool2d(self.c(x), 4)", "torch.randn(2, 8, 8, 9)"
    ),
}
COMPILED = ("linear", "columns", "depth")
TARGETS = (80, 90, 100)


@functools.cache
def pushed_down(name: str) -> tuple[Any, Any, Any]:
    """Push down the one sum of a sample and generate what the action generates."""
    problem, graph = traced_text(SAMPLES[name])
    schedule = initial_schedule(graph)
    (action,) = [each for each in options(graph, schedule, load_sheet("h200")) if "algebra" in each.parameters]
    return problem, graph, apply(graph, schedule, action)


@pytest.mark.slow
def test_sums_pushed_down_match_float64(tmp_path: Path) -> None:
    """Results are as accurate as the reference's within a factor of four, whatever padding and stride cut off."""
    jobs = []
    for name, source in SAMPLES.items():
        problem, graph, schedule = pushed_down(name)
        jobs.append(write_job(tmp_path, name, unseen(small(source)), emit(problem, graph, schedule).source))
    for name, result in zip(SAMPLES, run_worker("interpreter_worker.py", jobs, interpret=True), strict=True):
        assert "crash" not in result, (name, result["crash"])
        assert result["error"] <= 1.0, (name, result)


@pytest.fixture(scope="session")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, int | str], dict[str, Any]]:
    """Compile three samples for every target."""
    return made_once(tmp_path_factory, "pushdown_compiled", _compiled)


def _compiled(folder: Path) -> dict[tuple[str, int | str], dict[str, Any]]:
    jobs = {}
    for name in COMPILED:
        problem, graph, schedule = pushed_down(name)
        jobs[name] = write_job(folder, name, unseen(small(SAMPLES[name])), emit(problem, graph, schedule).source)
    return for_targets(jobs, [(name, target) for name in COMPILED for target in TARGETS])


@pytest.mark.slow
@pytest.mark.parametrize("arch", TARGETS)
def test_sums_pushed_down_compile(compiled: Any, arch: int) -> None:
    """The sums and thin products that come of it compile for the target."""
    for name in COMPILED:
        result = compiled[name, arch]
        assert "crash" not in result, result["crash"]
        assert result["kernels"]


def test_no_product_with_tiles_is_left() -> None:
    """The product of a matrix becomes rows of sums, said so in the notes, and nothing is left to do again."""
    problem, graph, schedule = pushed_down("linear")
    assert {region.template for region in schedule.regions} == {"rows"}
    assert any("before its product" in note for note in emit(problem, graph, schedule).notes)
    again = [each for each in options(graph, schedule, load_sheet("h200")) if "algebra" in each.parameters]
    assert not again


@pytest.mark.parametrize(
    "body",
    [
        "(torch.relu(x @ y)).sum(1)",
        "(lambda z: z.sum(1) + z[:, 0])(x @ y)",
        "(x @ y).amax(1)",
        "((x @ y) * b).sum(1)",
        "(x.half() @ y.half()).sum(1)",
    ],
)
def test_a_sum_of_anything_else_stays(body: str) -> None:
    """What is not a sum of the product itself, of its scalings and shifts, or is read elsewhere too, is left as it stands."""
    graph = trace_problem(problem_of(function(body, MATRICES, "x, y, b")))
    assert not reduction_pushdowns(graph)


def test_a_pooling_of_means_comes_before_the_convolution_that_mixes_channels() -> None:
    """The convolution reads what the pooling leaves, in the cost model's choices without being asked for."""
    _, graph, schedule = pushed_down("pooled")
    assert [node.op for node in bind(graph, schedule).rewritten.nodes] == ["relu", "avg_pool2d", "conv2d"]
    assert all(choice.schedule.reduction_pushdown for choice in modelled_choices(graph, load_sheet("h100"), DEFAULT_POLICY, 3))


@pytest.mark.parametrize(
    ("layers", "body"),
    [
        ("Conv2d(c, 12, 1)", "F.max_pool2d(self.c(x), 2)"),
        ("Conv2d(c, 12, 3, padding=1)", "F.avg_pool2d(self.c(x), 2)"),
        ("Conv2d(c, 12, 1, stride=2)", "F.avg_pool2d(self.c(x), 2)"),
        ("Conv2d(c, 12, 1)", "F.avg_pool2d(torch.relu(self.c(x)), 2)"),
        ("Conv2d(c, 12, 1)", "F.avg_pool2d(self.c(x), 3, 2, padding=1)"),
        ("Conv2d(c, 12, 1)", "(lambda y: (F.avg_pool2d(y, 2), y))(self.c(x))"),
        ("Conv2d(c, 1, 1, bias=False)", "F.avg_pool2d(self.c(x), 2)"),
    ],
    ids=["maxima", "neighbours", "strided", "after relu", "zeros beside a bias", "read twice", "fewer channels left"],
)
def test_other_poolings_stay_behind_their_convolution(layers: str, body: str) -> None:
    """A pooling stays where it would mean something else before the convolution, or would have more channels to go through."""
    graph = trace_problem(problem_of(module(f"self.c = torch.nn.{layers}", f"return {body}", "torch.randn(2, 8, 10, 12)")))
    assert not reduction_pushdowns(graph)


def test_the_action_is_refused_elsewhere() -> None:
    """A region without such a sum refuses the action with the reason."""
    graph = trace_problem(problem_of(function("torch.relu(x).sum(1)")))
    action = Action(kind=ActionKind.ALGORITHM, region="r0", parameters={"algebra": "reduction_pushdown"})
    with pytest.raises(IllegalAction, match="no sum that can be taken"):
        apply(graph, initial_schedule(graph), action)


def test_reductions_over_one_element_vanish() -> None:
    """What a chain of reductions does to a single column is nothing: neither kernels nor calls are left of it."""
    chain = "torch.logsumexp(torch.max(x.sum(1, keepdim=True), dim=1, keepdim=True)[0].mean(1, keepdim=True), dim=1) * 2"
    graph = trace_problem(problem_of(function(chain)))
    assert [node.op for node in graph.nodes] == ["sum", "squeeze", "mul"]
