"""A tensor that meets itself along other dimensions is not taken for its diagonal."""

from __future__ import annotations

from typing import Any

import pytest

from tests.tools.codegen.harness import generated, run_worker, small, traced_text, unseen, write_job
from tools.codegen import emit

HEAD = "import torch\n\nROWS = 9\n\n\ndef sample(x):\n    return {body}\n\n\n"
TAIL = "def example_inputs():\n    return (torch.randn(ROWS, {cols}),)\n"
MET: dict[str, tuple[str, str]] = {
    "differences": ("((x[:, None] - x[None]) ** 2).sum(-1)", "3"),
    "symmetric": ("0.5 * (x + x.t()) + x.sum(1)", "ROWS"),
    "made_first": ("torch.relu(x)[:, None] - torch.relu(x)[None]", "3"),
}


@pytest.mark.slow
def test_a_tensor_meets_itself(tmp_path: Any) -> None:
    """Pairwise differences, a matrix plus its transpose, and what is made first and then met give what torch gives."""
    jobs = []
    for name, (body, cols) in MET.items():
        source = HEAD.format(body=body) + TAIL.format(cols=cols)
        problem, graph = traced_text(source)
        jobs.append(write_job(tmp_path, name, unseen(small(source)), emit(problem, graph, generated(graph, {})).source))
    for result in run_worker("interpreter_worker.py", jobs, interpret=True):
        assert result.get("error", result.get("crash")) <= 1.0
