"""Wrong uses that the builder follows without data: what a source takes without a word, and that a guard refuses it."""

from __future__ import annotations

import time

import pytest

from tests.tools.evaluation import sealable
from tools.evaluation import LocalPool
from tools.evaluation.wire.jobs.builder import BuildAnswer, BuilderJob
from tools.guards import contract_of, guarded
from tools.hardware import load_sheet
from tools.problems import load_problem, small_variants
from tools.records import Problem

SHEET = load_sheet("h200")
TAKEN = ("x of rank 3", "x in float64", "a gradient of x")


@pytest.fixture(scope="module")
def problem(tmp_path_factory: pytest.TempPathFactory) -> Problem:
    """A softmax of rows."""
    file = tmp_path_factory.mktemp("softmax") / "softmax.py"
    file.write_text(sealable.SOFTMAX_REFERENCE)
    return load_problem(file)


def followed(pool: LocalPool, problem: Problem, source: str) -> BuildAnswer:
    """Have the builder follow a source, and wrong uses of it."""
    pool._workers.start()
    job = BuilderJob(abi=problem.abi, source=source, sheet=SHEET, misuses=True)
    done = pool._workers.ask("builder", job.model_dump_json().encode(), {}, time.monotonic() + 120, -1, sandboxed=True)
    return BuildAnswer.model_validate_json(done.answer)


def test_a_guard_refuses_what_a_source_takes_and_leaves_its_plan_alone(pool: LocalPool, problem: Problem) -> None:
    """A softmax of two dimensions launches for three without a word; guarded it does not, and the same launches are sealed."""
    bare = followed(pool, problem, sealable.SOFTMAX)
    assert bare.taken == TAKEN
    behind = followed(pool, problem, guarded(sealable.SOFTMAX, contract_of(problem, small_variants(problem))))
    assert (behind.status, behind.taken, behind.notes) == ("built", (), ())
    assert behind.plan is not None
    assert bare.plan is not None
    assert behind.plan.steps == bare.plan.steps
