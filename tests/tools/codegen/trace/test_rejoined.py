"""Pieces that are joined again along another dimension, more or fewer of them at other sizes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.tools.codegen.harness import generated, made_once, run_worker, traced_at_all_sizes, unseen, write_job
from tools.codegen import emit

SOURCE = """
import torch

ROWS = 6
HEADS = 8
DIM = 5
SMALL_SIZES = [{{"ROWS": 3, "HEADS": 2, "DIM": 7}}, {{"ROWS": 5, "HEADS": 4, "DIM": 3}}]


def joined(x, y):
    x = x * 2
    return {body}


def example_inputs():
    return torch.randn(ROWS, HEADS * DIM), torch.randn(ROWS, HEADS, DIM)
"""

JOINED = {
    "heads into the batch": "torch.cat(x.chunk(y.shape[1], 1), 0).exp()",
    "heads by their width": "torch.cat(x.split(y.shape[2], -1), 0).exp()",
    "heads as a dimension": "torch.stack(x.chunk(y.shape[1], -1), 1) + y",
    "views into the batch": "torch.cat(torch.unbind(y, dim=1), dim=0).sum(1)",
    "views side by side": "torch.cat(y.unbind(1), -1) + x",
    "views of an argument": "(torch.stack(y.unbind(1), -1), x)",
}


def _source(name: str) -> str:
    return SOURCE.format(body=JOINED[name])


@pytest.fixture(scope="session")
def results(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """Run every sample in one process, with as many pieces as no trace of it had."""
    return made_once(tmp_path_factory, "rejoined", _results)


def _results(folder: Path) -> dict[str, dict[str, Any]]:
    jobs = []
    for place, name in enumerate(JOINED):
        problem, graph = traced_at_all_sizes(_source(name), "joined")
        small = unseen(_source(name).replace("ROWS = 6", "ROWS = 4").replace("HEADS = 8", "HEADS = 3"), "joined")
        jobs.append(write_job(folder, f"joined_{place}", small, emit(problem, graph, generated(graph, {})).source))
    return dict(zip(JOINED, run_worker("interpreter_worker.py", jobs, interpret=True), strict=True))


@pytest.mark.parametrize("name", JOINED)
def test_pieces_may_be_any_number(results: Any, name: str) -> None:
    """A reference that cuts a tensor into as many pieces as a size says, and joins all of them, is generated for any number."""
    assert traced_at_all_sizes(_source(name), "joined")[1].blocked == ()
    assert results[name].get("crash", "") == ""
    assert results[name]["error"] <= 1


@pytest.mark.parametrize("body", ["torch.cat(y.unbind(1)[::-1], 0)", "torch.cat(y.unbind(1)[1:], 0)", "torch.cat(x.split(4, 1), 1)"])
def test_other_joins_stay_as_they_are(body: str) -> None:
    """Pieces in another order, without one, or of several sizes are joined as written: how many there are has to be the same."""
    graph = traced_at_all_sizes(SOURCE.format(body=body).replace('"DIM": 7', '"DIM": 8'), "joined")[1]
    assert graph.blocked[0].startswith("the reference runs other operators at other sizes")
