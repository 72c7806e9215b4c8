"""No honest kernel is accused, static rules and all other defences being on."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.honest.corpus import Honest, by_hand, definitions, foreign, generated
from tools.errors import UserError
from tools.evaluation import EvaluationRequest, LocalPool
from tools.hardware import load_sheet
from tools.problems import small_variants
from tools.records import Evaluation

ALIKE = "graph_at_the_same_address"
"""Captures what a kernel that gives a graph its current input captures: judged by `make test-all`."""
BY_HAND = [pytest.param(one, id=one.name, marks=pytest.mark.thorough if one.name == ALIKE else ()) for one in by_hand(gpu=False)]


@pytest.fixture(scope="module")
def judge(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[Honest], Evaluation]]:
    """Evaluate a kernel as any user's is."""
    folder = tmp_path_factory.mktemp("honest")
    pool = LocalPool(folder / "scratch", None, parallel=2)

    def evaluate(kernel: Honest) -> Evaluation:
        problem = kernel.load(folder)
        request = EvaluationRequest(
            problem=problem,
            variants=small_variants(problem),
            candidate=kernel.name,
            source=kernel.source,
            target=load_sheet("h200"),
            timeout_s=120.0,
        )
        return asyncio.run(pool.evaluate(request))

    yield evaluate
    asyncio.run(pool.close())


@pytest.mark.parametrize("kernel", BY_HAND)
def test_honest_kernel_passes(judge: Callable[[Honest], Evaluation], kernel: Honest) -> None:
    """Caches of shapes, packed weights, workspaces, atomics and the like are no offence."""
    found = judge(kernel)

    assert found.verdict == "PASS", (found.rule, found.notes, found.log[-1000:])
    assert found.weakened == ()


def test_generated_kernel_passes(judge: Callable[[Honest], Evaluation]) -> None:
    """What the built-in coder generates is not accused; the benchmark judges more than a hundred of them."""
    kernel = next(generated(1, ("softmax",)))

    assert judge(kernel).verdict == "PASS"


def test_definitions_leave_out_what_a_tutorial_does() -> None:
    """Of a tutorial its functions and constants stay, and what it measures goes."""
    text = """
import torch
SIZE = 3
x = torch.rand(3)
def add(x):
    return x
@triton.testing.perf_report(1)
def bench():
    pass
print(add(x))
"""

    kept = definitions(text)

    assert "def add" in kept
    assert "SIZE = 3" in kept
    assert "bench" not in kept
    assert "print" not in kept
    assert "torch.rand" not in kept


def test_library_out_of_sight_is_refused(tmp_path: Path) -> None:
    """A folder that sandboxes do not show gives one clear error before anything is judged."""
    with pytest.raises(UserError, match="not shown"):
        list(foreign("liger", tmp_path))
