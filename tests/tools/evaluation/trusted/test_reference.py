"""The oracle and the inputs, on the project's own operators, with a runner that computes in float32."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tools.evaluation import EvaluationRequest, LocalPool
from tools.hardware import load_sheet
from tools.problems import load_problem, small_variants
from tools.records import Evaluation, PrecisionPolicy

OPERATORS = sorted((Path(__file__).parents[4] / "data" / "operators").glob("*.py"))
SELF = """


class ModelNew({base}):
    pass
"""
WRAPPED = """


class ModelNew(torch.nn.Module):
    def forward(self, *arguments):
        return {name}(*arguments)
"""


def candidate(path: Path) -> tuple[str, str]:
    """The operator's own file as a candidate that only calls torch, and its entry."""
    problem = load_problem(path)
    form = SELF.format(base="Model") if problem.entry == "Model" else WRAPPED.format(name=problem.entry)
    return path.read_text() + form, problem.entry


async def judge(pool: LocalPool, path: Path, source: str, policy: PrecisionPolicy | None = None) -> Evaluation:
    """Evaluate a source against the operator in a file."""
    problem = load_problem(path)
    if policy is not None:
        problem = problem.model_copy(update={"policy": policy})
    request = EvaluationRequest(
        problem=problem, variants=small_variants(problem)[:2], candidate="c", source=source, target=load_sheet("h200"), timeout_s=60
    )
    return await pool.evaluate(request)


@pytest.mark.parametrize("path", OPERATORS, ids=lambda path: path.stem)
def test_reference_passes_as_its_own_candidate(pool: LocalPool, path: Path) -> None:
    """The reference, given as a candidate, passes at its own precision, on every distribution, and is a library's."""
    source, _ = candidate(path)
    found = asyncio.run(judge(pool, path, source))

    assert found.verdict == "PASS", (found.notes, found.log)
    assert found.provenance == "library"


@pytest.mark.parametrize("name", ["rms_norm_residual", "softmax"])
def test_half_precision_is_wrong_under_exact_and_right_under_its_policy(pool: LocalPool, name: str) -> None:
    """The same operator on inputs rounded to fp16 fails as exact and passes where the user allows fp16."""
    path = next(path for path in OPERATORS if path.stem == name)
    source, _ = candidate(path)
    rounded = source.replace("class ModelNew", "class Exact", 1) + ROUNDED
    found = [asyncio.run(judge(pool, path, rounded, policy)) for policy in (None, PrecisionPolicy(name="fp16"))]

    assert [evaluation.verdict for evaluation in found] == ["WRONG", "PASS"], [(evaluation.notes, evaluation.log) for evaluation in found]


ROUNDED = """


class ModelNew(Exact):
    def forward(self, *arguments):
        return super().forward(*[a.half().float() for a in arguments])
"""
