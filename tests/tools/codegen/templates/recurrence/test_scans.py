"""What a step accumulates along one dimension meets tiles of others."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.tools.codegen.harness import generated, run_worker, traced_text, unseen, write_job
from tools.codegen import emit

TEXT = """import torch

BATCH = 4
STEPS = 40
KEYS = 32
VALUES = 64
SMALL_SIZES = [{"BATCH": 2, "STEPS": 7, "KEYS": 5, "VALUES": 3}, {"BATCH": 3, "STEPS": 13, "KEYS": 8, "VALUES": 16}]


def accumulated(k, v):
    state = torch.zeros(k.shape[0], k.shape[2], v.shape[2], device=k.device)
    outs = []
    for t in range(k.shape[1]):
        state = torch.tanh(state) * 0.9 + torch.cumsum(k[:, t], -1)[:, :, None] * v[:, t, None, :]
        outs.append(state.sum(1) + torch.cumsum(v[:, t], -1))
    return torch.stack(outs, 1)


def example_inputs():
    return torch.randn(BATCH, STEPS, KEYS), torch.randn(BATCH, STEPS, VALUES)
"""


@pytest.mark.slow
def test_scans_within_a_step_have_no_dimension_of_one(tmp_path: Path) -> None:
    """Triton 3.6 ends in an assertion at those that meet wider tiles; the results are those of float64."""
    problem, graph = traced_text(TEXT)
    source = emit(problem, graph, generated(graph, {})).source
    scans = [line for line in source.splitlines() if "tl.cumsum(" in line]
    assert len(scans) == 2
    assert all("tl.cumsum(tl.reshape(" in line for line in scans)
    at_small = unseen(TEXT.replace("KEYS = 32", "KEYS = 7").replace("VALUES = 64", "VALUES = 5").replace("STEPS = 40", "STEPS = 6"))
    (found,) = run_worker("interpreter_worker.py", [write_job(tmp_path, "accumulated", at_small, source)], interpret=True)
    assert found.get("error", 2.0) <= 1.0, found
