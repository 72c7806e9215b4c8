"""What is written in place through views that reshape, turn or take a part: every name of the memory reads it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.tools.codegen.harness import generated, made_once, run_worker, traced_text, unseen, write_job
from tools.codegen import emit

SOURCE = """
import torch

ROWS = 6
COLS = 20
SMALL_SIZES = [{{"ROWS": 3, "COLS": 12}}, {{"ROWS": 5, "COLS": 8}}]


def written(x, places):
    y = x * 2 + 1
{body}


def example_inputs():
    return (torch.randn(ROWS, COLS), torch.randperm(ROWS * 2)[:ROWS])
"""

WRITTEN = {
    "a range of the flat tensor": "y.view(-1)[3:9] = 0; return y + 1",
    "a range of the flat tensor, added to": "y.view(-1)[3:9] += 1; return y.exp()",
    "a head": "y.view(x.shape[0], 4, -1)[:, 1].copy_(x[:, : x.shape[1] // 4]); return y + 1",
    "every other column": "y.flatten(0)[::2] += 1; return y",
    "a dimension made of two": "y.unflatten(1, (4, -1))[:, 1] = 3; return y * x",
    "a narrowed part": "y.narrow(1, 2, 5).mul_(3); return y + 1",
    "a narrowed part from the end": "y.narrow(1, -2, 2).zero_(); return y + 1",
    "a line of the transposed": "y.t()[3].zero_(); return y + 1",
    "the transposed whole": "y.t().mul_(2); return y + 1",
    "dimensions turned around": "y.view(x.shape[0], 2, -1).permute(2, 0, 1)[1] += 1; return y + 1",
    "dimensions moved": "y.view(x.shape[0], 2, -1).movedim(0, 2)[0] *= 2; return y + 1",
    "a new dimension": "y.unsqueeze(0)[:, :, 2] = 1; return y + 1",
    "a diagonal": "y = y[:, : x.shape[0]] + 0; y.diagonal().fill_(3); return y.softmax(-1)",
    "a diagonal above": "y = y[:, : x.shape[0]] + 0; y.diagonal(2).mul_(3); return y + 1",
    "a diagonal below": "y = y[:, : x.shape[0]] + 0; y.diagonal(-1).add_(1); return y + 1",
    "a diagonal of the last dimensions": "y[:, 1:5].unflatten(1, (2, 2)).diagonal(0, -2, -1).neg_(); return y + 1",
    "the diagonal by its own operator": "y.fill_diagonal_(0.5); return y + 1",
    "a diagonal of the flat tensor": "y = y[:, : x.shape[0]] + 0; y.view(-1)[:: x.shape[0] + 1].fill_(3); return y.softmax(-1)",
    "every so manieth column, as a size says": "y[:, :: x.shape[0] - 1] += 1; return y",
    "a piece": "a, b = y.view(x.shape[0], 2, -1).chunk(2, -1); a.mul_(b); b.add_(1); return y + a.sum()",
    "one of a few columns": "a = y.view(-1, 4).unbind(-1); a[1].mul_(2); a[2].add_(a[1]); return y + a[0].sum()",
    "a view that is read again": "a = y.view(-1); a.mul_(2); return y + a.view(y.shape)",
    "a view of a view that is read again": "a = y.view(-1); b = a[2:7]; y.mul_(2); a[3] = 9; return b + b.sum()",
    "a part that reaches into a piece": "b = y[:, 2:6]; a, c = y.chunk(2, 1); a.mul_(2); return b + c.sum()",
    "a piece whose whole was written": "a, b = y.chunk(2, 1); a.add_(1); y.mul_(2); return y + a.sum()",
    "a result of a write": "a = y[0].copy_(x[1]); y.mul_(2); return a + 1",
    "a dimension added in place": "a = y[1]; y.unsqueeze_(0); y[0, 1] = 5; return a + 1, y",
    "flags by an operator of Python": "a = y > 0; b = a.view(-1); a &= x > 1; return b, a",
    "a view of what experts write": (
        "w = torch.stack((x.T @ x, x.T @ y)); k = places % 2; o = torch.zeros_like(x); v = o.view(-1);"
        "r = torch.where(k == 0)[0]; o.index_add_(0, r, x[r] @ w[0]); r = torch.where(k == 1)[0]; o.index_add_(0, r, x[r] @ w[1]);"
        "return v + 1, o"
    ),
    "slots of pages": "c = x.new_zeros(2, x.shape[0], x.shape[1]); c.view(-1, x.shape[1])[places] = y; return c.sum(0)",
}


def _source(name: str) -> str:
    return SOURCE.format(body="\n".join(f"    {line.strip()}" for line in WRITTEN[name].split(";")))


@pytest.fixture(scope="session")
def results(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """Run every sample in one process, at sizes that no trace of it saw."""
    return made_once(tmp_path_factory, "view_writes", _results)


def _results(folder: Path) -> dict[str, dict[str, Any]]:
    jobs = [write_job(folder, f"view_{place}", _small(name), _written(name)) for place, name in enumerate(WRITTEN)]
    return dict(zip(WRITTEN, run_worker("interpreter_worker.py", jobs, interpret=True), strict=True))


def _small(name: str) -> Any:
    return unseen(_source(name).replace("ROWS = 6", "ROWS = 4").replace("COLS = 20", "COLS = 16"), "written")


def _written(name: str) -> str:
    problem, graph = traced_text(_source(name), "written")
    return emit(problem, graph, generated(graph, {})).source


@pytest.mark.parametrize("name", WRITTEN)
def test_what_is_written_through_a_view_is_read_everywhere(results: Any, name: str) -> None:
    """All names of the memory give what they give in PyTorch, and the reference is not called for it."""
    assert not traced_text(_source(name), "written")[1].blocked
    assert results[name].get("crash", "") == ""
    assert results[name]["error"] <= 1


@pytest.mark.parametrize("name", ["a head", "a diagonal", "the transposed whole", "a view that is read again"])
def test_such_a_write_is_generated(name: str) -> None:
    """No operator of it is left to the library."""
    graph = traced_text(_source(name), "written")[1]
    assert {region.template for region in generated(graph, {}).regions if region.nodes} <= {"rows", "tile", "pointwise"}


def test_what_was_put_back_and_nobody_reads_is_left_out() -> None:
    """A graph has no operators for readers that there are not."""
    body = "    a = y.view(-1)\n    a.mul_(2)\n    return a.sum()"
    assert [node.op for node in traced_text(SOURCE.format(body=body), "written")[1].nodes] == ["mul", "add", "view", "mul", "sum"]


def test_a_tensor_that_an_argument_is_copied_to_is_returned_as_another() -> None:
    """Whoever writes to the result leaves the argument as it is."""
    graph = traced_text(SOURCE.format(body="    y.copy_(x)\n    return y"), "written")[1]
    assert {ref.name for ref in graph.returned}.isdisjoint(graph.inputs)
