"""What a forward leaves in the module's buffers is written at its end, together, and only where that changes nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.tools.codegen.compute_samples import module
from tests.tools.codegen.harness import generated, problem_of, run_worker, trace_problem, write_job
from tools.codegen import emit
from tools.codegen.schedule.buffer_updates import deferrable

LAYERS = "; ".join(f"self.n{i} = torch.nn.BatchNorm1d(c)" for i in range(4))
APART = module(LAYERS, "return self.n3(F.relu(self.n2(self.n1(self.n0(x)))))", "torch.randn(5, 8, 3)")
TWICE = module("self.n = torch.nn.BatchNorm1d(c)", "return self.n(F.relu(self.n(x)))", "torch.randn(5, 8, 3)")


def test_many_norms_write_their_statistics_in_two_calls() -> None:
    """Four batch norms end with one call for their running statistics and one for their counters."""
    problem = problem_of(APART)
    graph = trace_problem(problem)
    source = emit(problem, graph, generated(graph, {})).source
    assert (source.count("_foreach_copy_("), source.count("_foreach_add_(")) == (1, 1)
    assert ".copy_(" not in source


def test_a_buffer_that_is_read_again_is_read_as_it_will_be() -> None:
    """A layer used twice counts twice; its second run takes what its first one will write, and only the last is written."""
    graph = trace_problem(problem_of(TWICE))
    assert len(deferrable(graph)) == 2
    assert len(graph.effects) == 4


@pytest.mark.slow
def test_buffers_are_left_as_the_reference_leaves_them(tmp_path: Path) -> None:
    """Results and buffers after one call are the reference's, written together or not."""
    jobs = []
    for name, source in (("apart", APART), ("twice", TWICE)):
        problem = problem_of(source)
        graph = trace_problem(problem)
        jobs.append(write_job(tmp_path, name, problem, emit(problem, graph, generated(graph, {})).source))
    for result in run_worker("interpreter_worker.py", jobs, interpret=True):
        assert "crash" not in result, result["crash"]
        assert result["error"] <= 1.0
