"""Parts of a buffer are written and read in the reference's order, whatever kernels these end up in."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.tools.codegen.harness import run_worker, traced_text, write_job
from tools.codegen import emit, initial_schedule
from tools.codegen.schedule.memory_order import waits

MODEL = """
import torch

ROWS = 4
SMALL_SIZES = [{{"ROWS": 3}}, {{"ROWS": 9}}]


class Model(torch.nn.Module):
    def __init__(self, rows):
        super().__init__()
        self.register_buffer("cache", torch.randn(rows, 8, 16))
        self.lin = torch.nn.Linear(16, 16)

    def forward(self, x):
        q, k = torch.tanh(x) * 2, torch.softmax(self.lin(x), -1)
        {body}


def get_inputs():
    return [torch.randn(ROWS, 16)]


def get_init_inputs():
    return [ROWS]
"""
READ = "s = (q[:, None] * self.cache).sum(-1).softmax(-1)"
RESULT = "return (s[..., None] * self.cache).sum(1)"
BODIES = {
    "written, then read": f"self.cache[:, 3] = k; self.cache[:, 4] = k * 2; {READ}; {RESULT}",
    "read between writes": f"self.cache[:, 3] = k; {READ}; self.cache[:, 3] = k * 2; {RESULT}",
    "read alike at every turn": (
        "self.cache.copy_(x[:, None].expand(-1, 8, -1)); outs = []\n"
        "        for n in range(4): self.cache[:, n] = torch.tanh(self.cache[:, n + 1] + k); outs.append(self.cache.sum(1) + n)\n"
        "        return torch.stack(outs)"
    ),
}


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
def test_parts_of_a_buffer_are_read_as_they_were_then(body: str, tmp_path: Path) -> None:
    """A cache's row is there for who reads the cache after it was written, and not yet for who reads before."""
    problem, graph = traced_text(MODEL.format(body=body), "cached")
    assert graph.effects
    source = emit(problem, graph, initial_schedule(graph)).source
    (result,) = run_worker("interpreter_worker.py", [write_job(tmp_path, "cached", problem, source)], interpret=True)
    assert "crash" not in result, result["crash"]
    assert result["error"] <= 1.0


def test_who_shares_no_buffer_waits_for_nobody() -> None:
    """Readers of a buffer wait for its writers alone, writers for all before them; others for what they read."""
    _, graph = traced_text(MODEL.format(body=BODIES["read between writes"]), "cached")
    first, second = sorted(graph.effects, key=graph.order.__getitem__)
    shared = waits(graph)
    before = [name for name, others in shared.items() if first in others and graph.order[name] < graph.order[second]]
    after = [name for name, others in shared.items() if second in others]
    assert [graph.by_name[name].op for name in before] == ["mul"]
    assert [graph.by_name[name].op for name in after] == ["mul"]
    assert shared[second] == {first, *before}
    assert waits(traced_text(MODEL.format(body="return q * k"), "plain")[1]) == {}
