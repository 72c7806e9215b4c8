"""A row's largest element and the sum of exponentials relative to it, made in one walk along the row."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.tools.codegen.harness import run_worker, traced_text, write_job
from tests.tools.codegen.samples import function
from tests.tools.codegen.templates.tile.test_tiles import SETTINGS, whole
from tools.codegen import emit
from tools.codegen.schedule.plan import TILE, plan_region
from tools.codegen.templates.tile.placement import tile_layout_of
from tools.codegen.templates.tile.work import RESCALED, work_of

SHARE_OF_ONE = function("x.log_softmax(1).gather(1, y)", "torch.randn(9, 70), torch.randint(0, 70, (9, 1))", "x, y")
INFINITE = (
    "torch.stack([torch.full((70,), -torch.inf), torch.full((70,), torch.inf), torch.full((70,), torch.nan), "
    "*torch.where(torch.rand(24, 70) > 0.3, torch.randn(24, 70), -torch.inf), "
    "*torch.where(torch.rand(8, 70) > 0.05, torch.randn(8, 70), torch.inf), "
    "*torch.where(torch.rand(8, 70) > 0.05, torch.randn(8, 70), torch.nan), *(30 * torch.randn(20, 70) + 500)])"
)
ENTROPIES = (
    "x.logsumexp(1) - (x.softmax(1) * x).sum(1) + y[0, 0]",
    "-(x.softmax(1) * x.log_softmax(1)).sum(1) + x.logsumexp(1) * y[:, 0]",
    "(-x.log_softmax(1).exp() * x.log_softmax(1)).sum(1) + y[:, 0]",
    "(torch.exp(x - x.logsumexp(1, True)) * (x - x.logsumexp(1, True))).sum(1) + y[:, 0]",
    "(x.softmax(1) * (x * x + y)).sum(1, keepdim=True) + x.gather(1, y)",
)


@pytest.mark.parametrize("text", ["x.log_softmax(1).gather(1, y)", *ENTROPIES])
def test_a_step_takes_one_exponential(text: str) -> None:
    """Of an element and the largest before it, one is the larger: only the other's exponential is made, and one walk makes all sums."""
    problem, graph = traced_text(function(text, "torch.randn(9, 70), torch.randint(0, 70, (9, 1))", "x, y"))
    source = emit(problem, graph, whole(graph, "looped")).source
    assert source.count("for start in") == 1
    walk = source[source.index("for start in") : source.index(" = tl.max(")]
    assert walk.count("tl.exp(") == 1
    assert "exp_accurate(" not in source


@pytest.mark.parametrize("rows", [9, 7])
def test_a_gather_of_a_softmax_walks_its_rows_with_their_other_readers(rows: int) -> None:
    """What is gathered with rows of its own is of the same rows: a step reads them once, unless there are fewer rows than were walked."""
    text = "x.sin().logsumexp(1)[:y.shape[0]] - (x.sin() * 0.5).log_softmax(1).gather(1, y).sum(1)"
    problem, graph = traced_text(function(text, f"torch.randn(9, 70), torch.randint(0, 70, ({rows}, 4))", "x, y"))
    source = emit(problem, graph, whole(graph, "looped")).source
    walk = source[source.index("for start in") : source.index(" = tl.max(")]
    assert walk.count("tl.load(") == (1 if rows == 9 else 2)


def test_the_model_counts_a_steps_exponential_once() -> None:
    """The formula of each element is not counted besides the step that makes it."""
    _, graph = traced_text(SHARE_OF_ONE)
    layout = tile_layout_of(plan_region(graph, tuple(node.name for node in graph.nodes), TILE).kernel)
    assert layout.merged
    (walked,) = (count for (_, _, axes, _), count in work_of(layout, False, None).formulas.items() if axes)
    assert walked <= RESCALED + 2


@pytest.mark.parametrize("setting", ["looped", "split"])
@pytest.mark.parametrize("text", ["x.logsumexp(1) + y[0, 0]", "x.log_softmax(1).gather(1, y)", *ENTROPIES])
def test_infinities_count_as_the_reference_counts_them(tmp_path: Path, setting: str, text: str) -> None:
    """Rows of infinities, with some of them, or with what is no number, in lanes that begin with one or meet it later."""
    assert "reduction" in SETTINGS[setting]
    problem, graph = traced_text(function(text, f"{INFINITE}, torch.randint(0, 70, (63, 1))", "x, y"))
    job = write_job(tmp_path, setting, problem, emit(problem, graph, whole(graph, setting)).source)
    (found,) = run_worker("interpreter_worker.py", [job], interpret=True)
    assert found.get("error", found) <= 1.0
