"""Concatenations are made in the kernels of what stands before and after them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.breadth import covering, unlike
from tests.tools.codegen.harness import (
    for_targets,
    generated,
    made_once,
    problem_of,
    run_worker,
    small,
    trace_problem,
    traced_text,
    unseen,
    write_job,
)
from tests.tools.codegen.samples import function
from tests.tools.codegen.templates.test_memory_bound import SETTINGS
from tools.codegen import emit, initial_schedule, limits
from tools.codegen.schedule.plan import plan_region
from tools.codegen.templates.pointwise.launches import pointwise_launches
from tools.cost.launch_time import launch_time_us
from tools.hardware import load_sheet

JOINED: dict[str, str] = {
    "channels": function(
        "torch.relu(torch.cat((torch.tanh(x + b), y, z), 1)) * s",
        "torch.randn(3, 5, 6, COLS), torch.randn(3, 1, 6, COLS), torch.randn(3, 4, 6, COLS), torch.randn(5, 1, 1), torch.randn(10, 1, 1)",
        "x, y, z, b, s",
    ),
    "last": function(
        "(torch.cat((x, y), dim=-1) + 1, torch.cat((x[0], y[1, :9]), 1), torch.cat((x[0, 0], y[0, 0])))",
        "torch.randn(3, 9, ROWS), torch.randn(3, 9, COLS)",
        "x, y",
    ),
    "first": function("torch.sigmoid(torch.cat((x * 2, y)))", "torch.randn(ROWS, COLS), torch.randn(COLS, COLS)", "x, y"),
    "norms": function(
        "(F.layer_norm(torch.cat((x, y), 2), (x.shape[2] + y.shape[2],), w), "
        "torch.softmax(torch.cat((torch.relu(x), y * 3), 1), 2)[..., 0])",
        "torch.randn(3, 7, COLS), torch.randn(3, 7, COLS), torch.randn(2 * COLS)",
        "x, y, w",
    ),
    "twice": function("torch.cat((x, torch.tanh(x), y), 1) * 2 + 1", "torch.randn(4, 3, COLS), torch.randn(4, ROWS, COLS)", "x, y"),
    "whole_numbers": function("torch.cat((a, b), 1) + 1", "torch.randint(0, 9, (ROWS, COLS)), torch.randint(0, 9, (ROWS, 3))", "a, b"),
    "dense": """import torch
from torch import nn

BATCH = 3
WIDTH = 9


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.norms = nn.ModuleList([nn.BatchNorm2d(5), nn.BatchNorm2d(9)])

    def forward(self, x, y, z):
        features = [x, y]
        one = torch.relu(self.norms[0](torch.cat(features, 1)))
        features.append(z)
        return one, torch.relu(self.norms[1](torch.cat(features, 1)))


def get_inputs():
    return [torch.randn(BATCH, 3, 7, WIDTH) + 2, torch.randn(BATCH, 2, 7, WIDTH), torch.randn(BATCH, 4, 7, WIDTH)]


def get_init_inputs():
    return []
""",
}
"""By name: source text."""
CASES = covering([(name, setting) for name in JOINED for setting in SETTINGS])
COMPILED = {"channels": "blocks", "dense": "blocks", "norms": "shared", "last": "block"}
"""Samples that are compiled, and their way."""
TARGETS = (80, 90, 100)
COMPILED_FOR = covering([(name, target) for name in unlike(COMPILED, {"last"}) for target in TARGETS])


@pytest.fixture(scope="session")
def judged(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, str], dict[str, Any]]:
    """Run every case at sizes it was not traced at, in one process."""
    return made_once(tmp_path_factory, "joins", _judged)


def _judged(folder: Path) -> dict[tuple[str, str], dict[str, Any]]:
    jobs = {}
    for name, key in CASES:
        problem, graph = traced_text(JOINED[name], name)
        text = emit(problem, graph, generated(graph, SETTINGS[key])).source
        jobs[name, key] = write_job(folder, f"{name}_{key}", unseen(small(JOINED[name]), name), text)
    return dict(zip(jobs, run_worker("interpreter_worker.py", list(jobs.values()), interpret=True), strict=True))


@pytest.mark.slow
@pytest.mark.parametrize(("name", "setting"), CASES)
def test_a_concatenation_gives_the_references_results(judged: Any, name: str, setting: str) -> None:
    """Each element comes from its piece, whatever is computed before and after, along rows and along columns."""
    result = judged[name, setting]
    assert "crash" not in result, result["crash"]
    assert result["error"] <= 1.0


@pytest.fixture(scope="session")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, int | str], dict[str, Any]]:
    """Compile four samples."""
    return made_once(tmp_path_factory, "joins_compiled", _compiled)


def _compiled(folder: Path) -> dict[tuple[str, int | str], dict[str, Any]]:
    jobs = {}
    for name, way in COMPILED.items():
        problem, graph = traced_text(JOINED[name], name)
        jobs[name] = write_job(folder, name, problem, emit(problem, graph, generated(graph, SETTINGS[way])).source)
    return for_targets(jobs, COMPILED_FOR)


@pytest.mark.slow
@pytest.mark.parametrize("target", TARGETS)
def test_concatenations_compile(compiled: Any, target: int) -> None:
    """Kernels with a concatenation along their rows and along their columns compile for a target, and for each target there are some."""
    for name in (name for name, at in COMPILED_FOR if at == target):
        result = compiled[name, target]
        assert "crash" not in result, result["crash"]
        assert result["kernels"]


def test_what_stands_around_a_concatenation_shares_its_kernel() -> None:
    """Pointwise operators on the pieces and on the whole are one region, and nothing is left to the library."""
    _, graph = traced_text(JOINED["channels"], "channels")
    assert not limits(graph)
    (region,) = initial_schedule(graph).regions
    assert set(region.nodes) == {"add", "tanh", "cat", "relu", "mul"}


def test_a_list_that_grows_is_joined_to_what_was_joined_before() -> None:
    """A concatenation that starts with the pieces of an earlier one takes its result and the rest."""
    _, graph = traced_text(JOINED["dense"], "dense")
    first, second = [node for node in graph.nodes if node.op == "cat"]
    assert len(second.args[0]) == 2
    assert second.args[0][0].name == first.name


def test_pieces_of_several_dtypes_stay_with_the_library() -> None:
    """A concatenation that promotes its pieces is left, with the reason."""
    graph = trace_problem(problem_of(function("torch.cat((x, y.half()), 1)", "torch.randn(5, COLS), torch.randn(5, COLS)", "x, y")))
    assert any("several dtypes" in limit.reason for limit in limits(graph))


def test_a_buffer_may_change_between_two_concatenations() -> None:
    """Pieces that are buffers are read again, whatever was joined before."""
    text = JOINED["dense"].replace("features = [x, y]", "features = [self.kept, y]")
    text = text.replace("self.norms = ", 'self.register_buffer("kept", torch.ones(3, 3, 7, 9))\n        self.norms = ')
    first, second = [node for node in trace_problem(problem_of(text)).nodes if node.op == "cat"]
    assert (len(first.args[0]), len(second.args[0])) == (2, 3)


def test_a_concatenation_by_itself_has_a_modelled_time() -> None:
    """No single piece is as large as the result, and the cost model still counts what is read and written."""
    source = function("torch.cat((x, y), 1)", "torch.randn(4096, COLS), torch.randn(4096, COLS)", "x, y")
    graph = trace_problem(problem_of(source))
    (region,) = initial_schedule(graph).regions
    planned = plan_region(graph, region.nodes)
    (shape,) = pointwise_launches(planned.kernel, planned.defaults(132))
    assert shape.dram_bytes == 2 * 2 * 4096 * 70 * 4
    assert 0 < launch_time_us(shape, load_sheet("h200")) < 1000


def test_a_small_piece_that_a_reduction_makes_is_made_by_itself() -> None:
    """Sums of sixteen beside seventy other columns are a kernel of their own: one kernel would take them at all seventy-four."""
    share = "(torch.softmax(x.view(-1, 4, 16), 2) * torch.arange(16)).sum(2)"
    text = f"torch.cat(((1 - {share}.chunk(2, 1)[0]) / 2, 1 + {share}.chunk(2, 1)[1], y), 1)"
    _, graph = traced_text(function(text, "torch.randn(ROWS, 64), torch.randn(ROWS, COLS)", "x, y"))
    last = next(region for region in initial_schedule(graph).regions if any(graph.by_name[name].op == "cat" for name in region.nodes))
    assert not {graph.by_name[name].op for name in last.nodes} & {"softmax", "sum"}


def test_parts_of_complex_numbers_are_joined_by_the_library() -> None:
    """What a transform gives is complex, which no kernel reads: its real and imaginary parts are views that stay with PyTorch."""
    _, graph = traced_text(function("torch.stack((torch.fft.rfft(x).real, torch.fft.rfft(x).imag), -1)"))
    [joined] = [region for region in initial_schedule(graph).regions if "stack" in region.nodes]
    assert joined.template == "library"
