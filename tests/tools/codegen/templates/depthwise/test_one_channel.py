"""Convolutions from one channel to one, as blurs of grey pictures are: planes are the pictures of a batch."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.tools.codegen.compute_samples import module
from tests.tools.codegen.harness import generated, run_worker, traced_text, unseen, write_job
from tools.codegen import emit
from tools.codegen.schedule.plan import plan_region

LAYERS = {
    "picture": ("Conv2d(1, 1, 5, padding=2)", "torch.randn(5, 1, 21, 18)", "torch.randn(2, 1, 7, 33)"),
    "strided picture": ("Conv2d(1, 1, (3, 4), stride=2, dilation=(2, 1))", "torch.randn(5, 1, 21, 32)", "torch.randn(1, 1, 9, 17)"),
    "volume": ("Conv3d(1, 1, (1, 3, 5), padding=(0, 1, 2))", "torch.randn(3, 1, 4, 9, 8)", "torch.randn(2, 1, 3, 5, 11)"),
}


@pytest.mark.parametrize("name", LAYERS)
def test_one_channel_is_a_plane_of_each_image(tmp_path: Path, name: str) -> None:
    """Pictures and volumes, strided or dilated, with a bias and what follows, at other sizes than they were traced at."""
    layer, given, other = LAYERS[name]
    text = module(f"self.l = torch.nn.{layer}", "return torch.relu(self.l(x)) * 2", given)
    problem, graph = traced_text(text)
    region = [node.name for node in graph.nodes if node.op.startswith("conv")]
    assert plan_region(graph, tuple(region)).template.name == "depthwise"
    source = emit(problem, graph, generated(graph, {})).source
    jobs = [write_job(tmp_path, "own", problem, source), write_job(tmp_path, "other", unseen(text.replace(given, other)), source)]
    for found in run_worker("interpreter_worker.py", jobs, interpret=True):
        assert found.get("error", found) <= 1.0
