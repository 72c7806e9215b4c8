"""Loops of Python are one operator of the graph, whatever their length and however they are written."""

from __future__ import annotations

import cProfile
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.support.breadth import covering
from tests.tools.codegen.harness import generated, made_once, problem_of, run_worker, small, traced_at_all_sizes, unseen, write_job
from tests.tools.codegen.loop_samples import GROWN, LOOPS, SQUARES, WRAPS
from tools.codegen import emit, initial_schedule, trace
from tools.codegen.ir.expr import LoweringError
from tools.codegen.ir.loop import Loop
from tools.codegen.schedule.plan import plan_region
from tools.codegen.trace.exports import export_problem
from tools.codegen.trace.fold_loops import with_loops
from tools.cost.launches import region_us
from tools.hardware import load_sheet

SHAPES = {
    "linear": (1, 2), "matrix": (1, 1), "delta": (1, 1), "cell": (1, 2), "backwards": (1, 1), "from_itself": (1, 1), "rounds": (1, 1),
    "scanned": (1, 1), "resonator": (3, 2), "components": (1, 1),
}  # fmt: skip
"""How many values each loop carries, and how many results it has."""


MADE_AGAIN = """import torch

ROWS = 6


def moved(x, step):
    return torch.tanh(x - torch.tensor([0.25, {changing}, 2.0])) * torch.tensor({changing})


def sample(x):
    for step in range(7):
        x = x + moved(x, step)
    return x


def example_inputs():
    return [torch.randn(ROWS, 3)]
"""
SEQUENTIAL = {"algorithm": "sequential", "CHUNK": 64, "ROWS": 4, "precision": "tf32x3", "num_warps": 1, "num_stages": 2}
ALGORITHMS = {
    "linear": "scan",
    "matrix": "chunked",
    "delta": "sequential",
    "cell": "sequential",
    "backwards": "scan",
    "from_itself": "scan",
    "rounds": "sequential",
    "scanned": "sequential",
    "resonator": "sequential",
    "components": "sequential",
}
"""What each loop is by its step: linear element by element, a matrix that queries read, or neither."""
SETTINGS = ("first", "sequential", "library")
"""Kernels of the step's own algorithm, of steps one by one, and the library's operators."""
CASES = covering([(name, setting) for name in LOOPS for setting in SETTINGS], also=[(name, "first") for name in LOOPS])


def loop_of(name: str) -> Loop:
    """Trace a sample, which has one loop."""
    (loop,) = (node for node in traced_at_all_sizes(LOOPS[name], name)[1].nodes if isinstance(node, Loop))
    return loop


@pytest.mark.parametrize("name", LOOPS)
def test_a_loop_is_one_operator(name: str) -> None:
    """It has its length as written, carries what its steps hand on and nothing else, and was traced at few steps."""
    loop = loop_of(name)
    assert loop.steps[0] == (19 if name == "from_itself" else 20)
    assert (len(loop.carried), len(loop.left)) == SHAPES[name]
    assert max(loop.steps[1:]) <= 9


def test_a_product_of_the_input_alone_goes_before_the_loop() -> None:
    """The cell's body multiplies what it carries; the input's product is made for all steps at once."""
    _, graph = traced_at_all_sizes(LOOPS["cell"], "cell")
    outside = [node.op for node in graph.nodes]
    assert outside.count("linear") == 3
    assert [node.op for node in loop_of("cell").body.nodes].count("linear") == 3


def test_a_loop_that_walks_backwards_says_so() -> None:
    """What it reads one element later is a view before the loop."""
    loop = loop_of("backwards")
    assert loop.backwards
    assert len(loop.sliced) == 4


def test_a_loop_begins_alike_whether_there_are_several_rows_or_one() -> None:
    """Of one row, what is made before the loop has the shape of what its steps make; it is no step for all that."""
    graph = traced_at_all_sizes(GROWN, "grown")[1]
    assert not graph.blocked
    assert {"arange", "mul"} <= {node.op for node in graph.nodes}
    assert [node.steps[0] for node in graph.nodes if isinstance(node, Loop)] == [10]


@pytest.mark.parametrize(("changing", "loops"), [("0.5", 1), ("0.5 + step", 0)])
def test_constants_that_a_helper_makes_at_every_step_are_one(changing: str, loops: int) -> None:
    """A tensor of the same numbers is one value, however often it is made; other numbers at each step are others."""
    export = export_problem(problem_of(MADE_AGAIN.format(changing=changing), "made_again"))
    assert sum(isinstance(node, Loop) for node in with_loops(export).nodes) == loops


def test_a_step_that_wraps_around_is_refused_in_words() -> None:
    """Where the index is no longer the step's number at full length, nothing is guessed."""
    graph = trace(problem_of(WRAPS, "wraps"))
    assert "reads beyond the end of a tensor" in graph.blocked[0]


def test_a_matrix_that_is_multiplied_by_itself_is_left_to_the_library() -> None:
    """Rows, columns and what is summed are three dimensions, of which a tile of the matrix has two."""
    graph = traced_at_all_sizes(SQUARES, "squares")[1]
    (loop,) = (node for node in graph.nodes if isinstance(node, Loop))
    with pytest.raises(LoweringError, match="are the same dimension"):
        plan_region(graph, (loop.name,))


@pytest.fixture(scope="session")
def results(tmp_path_factory: pytest.TempPathFactory) -> dict[Any, Any]:
    """Run every sample at sizes that no trace saw, by kernels of ours and by the library, all in one process."""
    return made_once(tmp_path_factory, "loops", _results)


def _results(folder: Path) -> dict[Any, Any]:
    jobs = []
    for name, setting in CASES:
        problem, graph = traced_at_all_sizes(LOOPS[name], name)
        schedule = (
            initial_schedule(graph)
            if setting == "library"
            else generated(graph, {"recurrence": SEQUENTIAL} if setting == "sequential" else {})
        )
        at_small = unseen(small(LOOPS[name]), name)
        jobs.append(write_job(folder, f"{name}_{setting}", at_small, emit(problem, graph, schedule).source))
    return dict(zip(CASES, run_worker("interpreter_worker.py", jobs, interpret=True), strict=True))


@pytest.mark.slow
@pytest.mark.parametrize(("name", "setting"), CASES)
def test_an_emitted_loop_matches_float64(results: Any, name: str, setting: str) -> None:
    """It is as accurate as the reference, within a factor of four."""
    result = results[name, setting]
    assert "crash" not in result, result["crash"]
    assert result["error"] <= 1.0


@pytest.mark.parametrize("name", LOOPS)
def test_every_loop_has_a_kernel(name: str) -> None:
    """None of them is left to the reference's own operators."""
    _, graph = traced_at_all_sizes(LOOPS[name], name)
    home = next(region for region in generated(graph, {}).regions if loop_of(name).name in region.nodes)
    assert (home.template, home.parameters["algorithm"]) == ("recurrence", ALGORITHMS[name])


def test_an_algorithm_that_a_step_does_not_allow_is_refused_in_words() -> None:
    """A step that multiplies what it carries by a matrix is no scan, and queries that meet it before it is written are no chunks."""
    for name, algorithm, reason in (("cell", "scan", "not linear"), ("delta", "chunked", "carries no matrix to which")):
        graph = traced_at_all_sizes(LOOPS[name], name)[1]
        planned = plan_region(graph, (loop_of(name).name,))
        assert reason in planned.template.refusal(planned.kernel, {**SEQUENTIAL, "algorithm": algorithm})


def test_the_cost_model_prefers_what_a_step_allows() -> None:
    """A scan is expected to take less than half of the steps one by one."""
    graph = traced_at_all_sizes(LOOPS["linear"], "linear")[1]
    planned = plan_region(graph, next(region.nodes for region in initial_schedule(graph).regions if "loop" in region.nodes))
    first, sheet = planned.defaults(132), load_sheet("h200")
    assert 2 * (region_us(planned, first, sheet) or 0.0) < (region_us(planned, {**first, "algorithm": "sequential"}, sheet) or 0.0)


HALVES = """import torch

STEPS = 64
WIDTH = 4096


def halves(x, state):
    out = []
    for t in range(x.shape[0]):
        state = torch.tanh(state + x[t].float())
        out.append(state)
    return torch.stack(out)


def example_inputs():
    return torch.randn(STEPS, WIDTH).bfloat16(), torch.randn(WIDTH)
"""


def test_loads_too_narrow_to_be_sent_ahead_are_waited_for_in_each_step() -> None:
    """One half a thread gains nothing by more stages; two, which are 32 bits, do."""
    graph = traced_at_all_sizes(HALVES, "halves")[1]
    planned = plan_region(graph, [next(node.name for node in graph.nodes if isinstance(node, Loop))])
    us = {
        (rows, stages): region_us(planned, SEQUENTIAL | {"ROWS": rows, "num_stages": stages}, load_sheet("h100"))
        for rows in (32, 64)
        for stages in (2, 8)
    }
    assert us[32, 2] == us[32, 8]
    assert (us[64, 2] or 0) > 1.5 * (us[64, 8] or 0)


SHIFTED = """import torch
import torch.nn.functional as F

def f(x):
    padded, total, weight = F.pad(x, (2, 2, 2, 2)), torch.zeros_like(x), torch.zeros_like(x)
    for dy in range(5):
        for dx in range(5):
            near = padded[:, dy : dy + 24, dx : dx + 24]
            w = torch.exp(-(near - x).square()) * (1.0 - 0.01 * (dy * dy + dx * dx * dx))
            total += w * near
            weight += w
    return total / weight

def example_inputs():
    return (torch.randn(3, 24, 24),)
"""


def test_what_repeats_without_being_a_loop_is_looked_at_once() -> None:
    """Two loops inside of each other that no numbers tell are given up soon: each place is tried once for a period."""
    export, calls = export_problem(problem_of(SHIFTED)), Counter[str]()
    sys.setprofile(lambda frame, event, _: calls.update([event]))
    try:
        with_loops(export)
    finally:
        sys.setprofile(None)
    assert calls["call"] < 4000 * len(export.nodes)


PAIRS = """import torch

ROWS = 5
FIELDS = 14
WIDTH = 3


def crossed(x):
    made = [x[:, i] * x[:, j] for i in range(x.shape[1]) for j in range(i + 1, x.shape[1])]
    return torch.stack(made, 1).sum(1)


def example_inputs():
    return (torch.randn(ROWS, FIELDS, WIDTH),)
"""


def test_what_grows_unevenly_is_tried_for_few_runs() -> None:
    """Every pair of many fields repeats with many periods and is no loop: Python makes few calls for each two operators to find that."""
    export = export_problem(problem_of(PAIRS, "pairs"))
    with cProfile.Profile() as profile:
        found = with_loops(export)
    assert not any(isinstance(node, Loop) for node in found.nodes)
    assert sum(entry.callcount for entry in profile.getstats()) < 5 * len(export.nodes) ** 2
