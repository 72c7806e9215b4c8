"""An emitted module returns what its reference returns, made alike."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from tests.tools.codegen.harness import generated, problem_of, run_worker, small, trace_problem, unseen, write_job
from tests.tools.codegen.interpreter_worker import load
from tests.tools.codegen.samples import XY, function
from tools.codegen import emit, initial_schedule
from tools.codegen.module.cuda_graph import HELPER

STATES = """import torch
from torch import nn

BATCH = 6
STEPS = 4


class Model(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.cells = nn.LSTM(width, width, batch_first=True)
        self.scale = nn.Parameter(torch.rand(width) + 0.5)

    def forward(self, x):
        out, (h, c) = self.cells(x)
        return torch.tanh(out) * self.scale, (h * 2, c * 2)


def get_inputs():
    return [torch.randn(BATCH, STEPS, 8)]


def get_init_inputs():
    return [8]
"""
HEAD = """from collections import OrderedDict
from typing import NamedTuple
import torch


class add(NamedTuple):
    x: torch.Tensor
    class_: list


class Pair(NamedTuple):
    one: torch.Tensor
    other: torch.Tensor | None


"""
RESULTS = {
    "lists": "[x * 2, x + y]",
    "one within a tuple": "(x * y,)",
    "a dictionary with None": "{'loss': None, 'logits': x * y, 'hidden': [x + y, (y - x,)], 3: x.sum(1)}",
    "an ordered dictionary": "OrderedDict(out=x * y, aux=x.sum(1))",
    "NamedTuples": "Pair(Pair(x + y, None), x * y)",
    "a NamedTuple called as a value is": "add(x + y, [torch.relu(x), y + 1])",
    "what torch returns with names": "{'best': torch.max(x * y, 1), 'sorted': torch.sort(x + y, 1)}",
    "one tensor twice": "(x + y, {'again': x + y})",
    "an argument": "{'given': x.clone(), 'made': x + 1}",
}
SOURCES = {"states": STATES} | {name: function(result, XY, "x, y").replace("import torch\n", HEAD, 1) for name, result in RESULTS.items()}


@pytest.mark.parametrize("name", SOURCES)
def test_emitted_results_are_made_as_the_references_are(tmp_path: Path, name: str) -> None:
    """Generated and left to the library, at the sizes as written and at others: the same values in the same structure."""
    problem, other = problem_of(SOURCES[name]), unseen(small(SOURCES[name]))
    graph = trace_problem(problem)
    assert not graph.blocked
    jobs = []
    for place, schedule in enumerate([initial_schedule(graph), generated(graph, {})]):
        source = emit(problem, graph, schedule).source
        jobs += [write_job(tmp_path, f"{kind}{place}", each, source) for kind, each in (("written", problem), ("other", other))]
    found = run_worker("interpreter_worker.py", jobs, interpret=True)
    assert all(result.get("error", 9.0) <= 1 for result in found), found


def test_a_captured_graphs_results_keep_their_structure(tmp_path: Path) -> None:
    """What is copied out of a graph's memory is made as it was."""
    file = tmp_path / "helper.py"
    file.write_text(f"import functools, weakref\nfrom collections import OrderedDict, namedtuple\nimport torch\n{HELPER}")
    helper: Any = load(str(file))
    given = helper.namedtuple("Pair", "one other")(torch.ones(2), [helper.OrderedDict(x=torch.zeros(1)), None])
    given = {"pair": given, "best": torch.max(torch.eye(2), 1)}
    copied = helper.copied(given)
    assert repr(copied) == repr(given)
    assert copied["pair"].one is not given["pair"].one
