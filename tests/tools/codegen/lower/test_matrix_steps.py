"""A loop over steps of small matrices is one kernel, which holds them in registers: products, transposes, factors and solutions."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.tools.codegen.harness import generated, run_worker, traced_text, write_job
from tools.codegen import emit

FILTER = """import torch

BANK = 5
STEPS = 4
STATE = 4
SEEN = 2
SMALL_SIZES = [{"BANK": 3, "STEPS": 3, "STATE": 6, "SEEN": 3}, {"BANK": 17, "STEPS": 2, "STATE": 5, "SEEN": 4}]


def filtered(z, f, h, noise):
    x = z.new_zeros(z.shape[0], f.shape[0])
    p = torch.eye(f.shape[0], dtype=z.dtype, device=z.device).repeat(z.shape[0], 1, 1)
    fit, means = z.new_zeros(z.shape[0]), []
    for t in range(z.shape[1]):
        x, p = x @ f.T, f @ p @ f.T
        p = 0.5 * (p + p.mT) + noise[0, 0]
        y, s = z[:, t] - x @ h.T, h @ p @ h.T + noise
        low = torch.linalg.cholesky(s)
        gain = torch.cholesky_solve(h @ p, low).mT
        white = torch.linalg.solve_triangular(low, y[..., None], upper=False)[..., 0]
        fit = fit - white.square().sum(-1) - low.diagonal(dim1=-2, dim2=-1).log().sum(-1)
        x, p = x + (gain @ y[..., None]).squeeze(-1), p - gain @ h @ p
        means.append(x)
    return torch.stack(means, 1), p, fit


def example_inputs():
    noise = torch.eye(SEEN) * 0.5 + 0.1
    return torch.randn(BANK, STEPS, SEEN), torch.randn(STATE, STATE) * 0.4, torch.randn(SEEN, STATE), noise
"""
SQUARED = """import torch

BATCH = 3
STEPS = 4
DIM = 5
SMALL_SIZES = [{"BATCH": 4, "STEPS": 3, "DIM": 6}, {"BATCH": 20, "STEPS": 2, "DIM": 7}]


def squared(x):
    p = x[:, 0]
    for t in range(x.shape[1]):
        p = torch.tanh(p @ p.mT + p.mT @ x[:, t] - p)
    return p


def example_inputs():
    return (torch.randn(BATCH, STEPS, DIM, DIM),)
"""
SAMPLES = {"filtered": FILTER, "squared": SQUARED}


@pytest.mark.parametrize("name", SAMPLES)
def test_a_loop_of_small_matrices_is_one_kernel(name: str) -> None:
    """Nothing of a step is left to the library, and its loop is not one of Python's."""
    graph = traced_text(SAMPLES[name], name)[1]
    regions = [region for region in generated(graph, {}).regions if any(graph.by_name[each].op == "recurrence" for each in region.nodes)]
    assert [region.template for region in regions] == ["recurrence"]


def test_small_matrices_are_right(tmp_path: Path) -> None:
    """Filters and products of a matrix by its own transpose are as accurate as the reference within a factor of four."""
    jobs = []
    for name, text in SAMPLES.items():
        problem, graph = traced_text(text, name)
        jobs.append(write_job(tmp_path, name, problem, emit(problem, graph, generated(graph, {})).source))
    for result in run_worker("interpreter_worker.py", jobs, interpret=True):
        assert result.get("error", 99.0) <= 1.0, result
