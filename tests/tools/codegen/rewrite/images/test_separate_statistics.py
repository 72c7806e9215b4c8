"""A batch norm's statistics as a step of their own: right, in either layout, and what normalises by them joins what follows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.tools.codegen.compute_samples import module
from tests.tools.codegen.harness import generated, run_worker, small, traced_text, unseen, write_job
from tests.tools.codegen.memory_samples import MEMORY_SAMPLES
from tools.codegen import Schedule, emit, initial_schedule
from tools.codegen.ir.graph import Statistics
from tools.codegen.rewrite.bind import bind
from tools.codegen.rewrite.channels_last import turnable, with_channels_last
from tools.codegen.rewrite.images.separate_statistics import separable_statistics, with_separate_statistics
from tools.codegen.templates.shared.knob import Settings

POOLED = module(
    "self.n = torch.nn.BatchNorm2d(c); self.m = torch.nn.BatchNorm2d(c, affine=False)",
    "return F.avg_pool2d(torch.relu(self.n(x)), 2), F.relu(self.n(x) + self.m(x * 2))",
    "torch.randn(5, 8, 6, 10) * 2 + 3",
)
BETWEEN = module(
    "self.a = torch.nn.Conv2d(c, 16, 3, padding=1); self.n = torch.nn.BatchNorm2d(16); self.b = torch.nn.Conv2d(16, 8, 3)",
    "return torch.relu(self.b(torch.relu(self.n(self.a(x))))) * 2",
    "torch.randn(3, 8, 7, 9)",
)
SPLIT: Settings = {"algorithm": "split", "ROWS": 4, "BLOCK_N": 16, "UNROLL": 1, "SPLITS": 3, "num_warps": 2, "num_stages": 1}


def apart(source: str, settings: dict[str, Settings] | None = None) -> tuple[Any, Any, Schedule]:
    """Trace a reference, take its statistics apart, and generate all that can be."""
    problem, graph = traced_text(source)
    names = separable_statistics(graph)
    schedule = generated(with_separate_statistics(graph, names), settings or {})
    return problem, graph, schedule.model_copy(update={"separate_statistics": names})


@pytest.mark.slow
def test_norms_in_two_steps_match_float64(tmp_path: Path) -> None:
    """Results and running statistics are as accurate as the reference's within a factor of four, whichever way the sums are made."""
    sources = {"plain": MEMORY_SAMPLES["batch_norm"], "pooled": POOLED, "between": BETWEEN}
    jobs = []
    for name, source in sources.items():
        for way, settings in (("first", {}), ("split", {"rows": {**SPLIT, "ROWS": 1}})):
            problem, graph, schedule = apart(source, settings)
            jobs.append(write_job(tmp_path, f"{name}_{way}", unseen(small(source)), emit(problem, graph, schedule).source))
    for job, result in zip(jobs, run_worker("interpreter_worker.py", jobs, interpret=True), strict=True):
        assert "crash" not in result, (job["source"], result["crash"])
        assert result["error"] <= 1.0, (job["source"], result)


def test_what_normalises_joins_the_pooling_after_it() -> None:
    """The statistics are one kernel, which writes a few numbers; the pooling reads the norm's input."""
    _, graph, schedule = apart(POOLED)
    changed = bind(graph, schedule).rewritten
    regions = [[changed.by_name[name].op for name in region.nodes] for region in schedule.regions]
    assert ["sub", "mul", "mul", "add", "relu", "avg_pool2d"] in regions
    alone = [region for region in schedule.regions if isinstance(changed.by_name[region.nodes[0]], Statistics)]
    assert alone
    assert {region.template for region in alone} == {"rows"}


def test_what_normalises_writes_rows_of_channels_between_convolutions() -> None:
    """With channels last it reads and writes memory in order: the statistics lie across it, and nothing is turned."""
    _, graph = traced_text(BETWEEN)
    changed = with_separate_statistics(graph, separable_statistics(graph))
    laid_out = with_channels_last(changed, turnable(changed))
    region = next(region for region in initial_schedule(laid_out).regions if "relu" in region.nodes)
    assert laid_out.by_name["relu"].outputs[0].shape[-1][0] == 16
    assert not any(isinstance(laid_out.by_name[name], Statistics) for name in region.nodes)


def test_a_norm_in_two_steps_is_left_alone() -> None:
    """A graph that was bound before may be bound again, and a norm whose result nobody reads is no such norm."""
    _, graph, schedule = apart(POOLED)
    once = bind(graph, schedule).rewritten
    assert not separable_statistics(once)
    assert bind(once, schedule).rewritten == once
