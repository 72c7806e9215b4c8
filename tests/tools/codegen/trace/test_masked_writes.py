"""What is written where a mask holds: a choice for each element, where it is computed of that element alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.tools.codegen.harness import generated, made_once, problem_of, run_worker, small, traced_text, unseen, write_job
from tools.codegen import emit, trace
from tools.codegen.ir.graph import DataSized, Ref

SOURCE = """
import torch

ROWS = 33
COLS = 70
SMALL_SIZES = [{{"ROWS": 7, "COLS": 18}}, {{"ROWS": 8, "COLS": 32}}]


def written(x, m, rows, cols, row):
    y = x.exp()
{body}


def example_inputs():
    return (torch.randn(ROWS, COLS), torch.rand(ROWS, COLS) > 0.5, torch.rand(ROWS) > 0.5, torch.rand(COLS) > 0.5, torch.randn(COLS))
"""

CHOSEN = {
    "a number": "y[m] = 0; return y * 2",
    "minus infinity": "y[~m] = float('-inf'); return torch.softmax(y, -1)",
    "a number subtracted": "y[m] -= 1; return y * 2",
    "a mask of the values": "y[y > 1] *= 0.5; return y * 2",
    "a mask that is said twice": "y[y > 2] = y[y > 2].clamp(max=3) * 0.5; return y",
    "outliers": "big = y.abs() > 3; y[big] = y[big].sign() * 3; return y",
    "the mean of all": "y[y < 1] = y.mean(); return y",
    "less the mean of those": "y[m] = y[m] - y[m].mean(); return y",
    "rows": "y[rows] = 0; return y * 2",
    "rows, by a row": "y[rows] *= row; return y * 2",
    "rows, by a row with a dimension": "y[rows] += row[None]; return y * 2",
    "rows, by a number each": "y[rows] = y[rows] / x[rows, 0].exp().unsqueeze(-1); return y",
    "columns": "y[:, cols] *= 3; return y",
    "columns, with an ellipsis": "y[..., cols] = -1; return y",
    "columns of rows": "y[rows, 2:5] = 0; return y",
    "one column of rows": "y[rows, 1] += 2; return y",
    "rows of a view": "y.view(x.shape[0], 2, -1)[rows] -= 1; return y",
    "another tensor's": "y[m] = x[m]; return y * 2",
    "computed of another's": "y[m] += torch.sigmoid(x[m]) * 2; return y",
    "logarithms of what has one": "z = torch.zeros_like(x); k = x > 0; z[k] = torch.log(x[k]); return z + y",
    "picked before it is written": "p = y[m]; y.zero_(); y[m] = p; return y",
    "no numbers": "y = x.log(); y[torch.isnan(y)] = 0; y[torch.isinf(y)] = -9; return y",
    "positions": "i, j = torch.where(y > 1); y[i, j] *= 2; return y",
    "positions as one": "y[(y > 1).nonzero(as_tuple=True)] = 0; return y",
    "added by the operator": "y.index_put_((rows,), row, accumulate=True); return y",
    "without writing in place": "return torch.index_put(y, (rows,), row)",
    "whole numbers": "z = (x * 9).to(torch.int32); z[m] += 3; return z",
    "whole numbers, divided by one": "z = (x * 9).to(torch.int32); z[m] = z[m] // 3 - z[m] % 4; z[~m] //= -2; return z",
    "half precision": "z = x.half(); z[m] /= 3; return z",
    "a mask that is written between": "k = y > 1; p = x[k] * 2; k &= m; y[k] = 1; return y, k",
}


def _source(body: str) -> str:
    return SOURCE.format(body="\n".join(f"    {line.strip()}" for line in body.split(";")))


@pytest.fixture(scope="session")
def results(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """Run every sample in one process, at sizes that no trace of it saw."""
    return made_once(tmp_path_factory, "masked_writes", _results)


def _results(folder: Path) -> dict[str, dict[str, Any]]:
    jobs = []
    for place, body in enumerate(CHOSEN.values()):
        problem, graph = traced_text(_source(body), "written")
        source = emit(problem, graph, generated(graph, {})).source
        jobs.append(write_job(folder, f"masked_{place}", unseen(small(_source(body)).replace("COLS = 37", "COLS = 38"), "written"), source))
    return dict(zip(CHOSEN, run_worker("interpreter_worker.py", jobs, interpret=True), strict=True))


@pytest.mark.parametrize("name", CHOSEN)
def test_what_is_written_at_a_mask_is_chosen(results: Any, name: str) -> None:
    """It gives what it gives in PyTorch, and the write picks nothing whose size is the data's."""
    graph = traced_text(_source(CHOSEN[name]), "written")[1]
    assert not any(node.op.startswith("index_put") for node in graph.nodes)
    assert sum(isinstance(node, DataSized) for node in graph.nodes) == (name == "less the mean of those")
    assert results[name].get("crash", "") == ""
    assert results[name]["error"] <= 1


def test_a_write_of_as_many_rows_as_were_picked_is_left_to_pytorch() -> None:
    """How many values there are is then the data's, and they are no choice."""
    graph = traced_text(_source("y[rows.logical_or(~rows)] = x; return y * 2"), "written")[1]
    assert "index_put" in {node.op for node in graph.nodes}


def test_values_of_another_mask_are_left_to_pytorch() -> None:
    """Two masks that pick as many need not pick the same."""
    assert traced_text(_source("y[m] = x[m.flip(0)]; return y"), "written")[1].blocked


def test_whole_numbers_that_nobody_picked_are_not_divided_by() -> None:
    """A mask may be what keeps a zero out."""
    assert traced_text(_source("z = (x * 3).int(); z[z > 0] = 12 // z[z > 0]; return z"), "written")[1].blocked


def test_whole_numbers_that_nobody_picked_are_not_divided_by_minus_one() -> None:
    """The least whole number has no such quotient, and a mask may be what keeps it out."""
    assert traced_text(_source("z = (x * 3).int(); z[m] = z[m] // -1; return z"), "written")[1].blocked


def test_a_mask_written_after_it_picked_is_another() -> None:
    """What was picked by what it held before has other places."""
    assert traced_text(_source("k = y > 1; p = y[k]; k.copy_(k.flip(0)); y[k] = p; return y"), "written")[1].blocked


def test_a_branch_on_a_mask_is_refused() -> None:
    """Whether anything is picked is no choice where Python asks."""
    body = "h = m.any()\n    if h:\n        y[m] = 0\n        y = y + 1\n    return y, h"
    assert traced_text(SOURCE.format(body=f"    {body}"), "written")[1].blocked


def test_an_argument_that_is_written_at_a_mask_is_stored_at_the_end() -> None:
    """Whoever calls it reads it afterwards."""
    graph = traced_text(_source("x[m] = 0; return y"), "written")[1]
    assert not graph.blocked
    assert [graph.by_name[name].args[0] for name in graph.effects] == [Ref("x")]


STATE = """
import torch

ROWS = 5
DIM = 24


class Model(torch.nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.register_buffer("state", torch.zeros(5, dim))
        self.step = torch.nn.Linear(dim, dim)

    def forward(self, x, done):
        self.state.copy_(x)
        self.state[done] = 0
        self.state[~done] += self.step(x)[~done]
        return self.state * 2


def get_inputs():
    return [torch.randn(ROWS, DIM), torch.rand(ROWS) > 0.5]


def get_init_inputs():
    return [DIM]
"""


def test_a_buffer_is_written_where_a_mask_holds(tmp_path: Path) -> None:
    """The buffer holds afterwards what it holds in PyTorch."""
    problem = problem_of(STATE, "Model")
    graph = trace(problem)
    job = write_job(tmp_path, "state", problem, emit(problem, graph, generated(graph, {})).source)
    (result,) = run_worker("interpreter_worker.py", [job], interpret=True)
    assert result.get("crash", "") == ""
    assert result["error"] <= 1
    assert [node.op for node in graph.nodes if node.name in graph.effects] == ["copy_"]
