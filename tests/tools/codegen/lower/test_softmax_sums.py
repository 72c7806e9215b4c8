"""Sums of what a softmax's weights multiply are divided once a row, and a softmax and a log-sum-exp of one row share their sum."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.tools.codegen.harness import run_worker, traced_text, write_job
from tests.tools.codegen.samples import function
from tests.tools.codegen.templates.tile.test_merged import INFINITE
from tools.codegen import Schedule, emit, initial_schedule
from tools.codegen.schedule.plan import plan_region
from tools.records import Problem

LENGTH = "torch.randn(12, 4000)"
ENTROPY = "-(x.softmax(1) * x.log_softmax(1)).sum(1)"
BOTH = "(x.softmax(1), x.logsumexp(1))"
SUMMED = [
    ENTROPY,
    "x.logsumexp(1) - (x.softmax(1) * x).sum(1)",
    "(x.log_softmax(1).exp() * x.log_softmax(1)).sum(1, keepdim=True)",
    "-(x.softmax(1) * (x - x.logsumexp(1, True))).sum(1)",
    "(-x.softmax(1) * x.abs() * 3).sum(1)",
]


def _written(text: str, inputs: str, algorithm: str) -> tuple[Problem, str]:
    """Write everything as one kernel of rows."""
    problem, graph = traced_text(function(text, inputs, "x"))
    names = tuple(node.name for node in graph.nodes)
    planned = plan_region(graph, names)
    parameters = {**planned.defaults(132), "algorithm": algorithm}
    assert not planned.template.refusal(planned.kernel, parameters)
    first = initial_schedule(graph).regions[0]
    region = first.model_copy(update={"id": "r0", "nodes": names, "template": planned.template.name, "parameters": parameters})
    return problem, emit(problem, graph, Schedule(regions=(region,))).source


@pytest.mark.parametrize("text", SUMMED)
def test_an_element_of_an_entropy_is_not_divided(text: str) -> None:
    """One exponential an element, and no division of one: sums are divided by sums."""
    source = _written(text, LENGTH, "looped")[1]
    walks = source.split("for start in")[1:]
    assert not any("/" in walk[: walk.index("tl.sum(")] for walk in walks if "tl.sum(" in walk)
    assert "exp_accurate(" not in source


def test_a_softmax_and_a_log_sum_exp_share_their_sum() -> None:
    """Of the same numbers one sum of exponentials is made."""
    assert _written(BOTH, LENGTH, "looped")[1].count("row_sum_lanes = ") == 1


@pytest.mark.parametrize("algorithm", ["registers", "looped", "online"])
@pytest.mark.parametrize("text", [*SUMMED, BOTH, "(x.softmax(1).sum(1), (x.softmax(1) * x).sum(1) + x.logsumexp(1))"])
def test_sums_are_those_of_the_reference(tmp_path: Path, text: str, algorithm: str) -> None:
    """Rows of infinities, with some of them, with what is no number, and far from zero."""
    job = write_job(tmp_path, algorithm, *_written(text, INFINITE, algorithm))
    (found,) = run_worker("interpreter_worker.py", [job], interpret=True)
    assert found.get("error", found) <= 1.0
