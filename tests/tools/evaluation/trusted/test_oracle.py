"""What the oracle calls wrong, and what it does not."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from tests.tools.evaluation.trusted.judged import judged_on
from tools.evaluation.trusted import distributions, oracle, tolerance
from tools.evaluation.trusted.numerics import ROUNDOFF
from tools.evaluation.trusted.rounding import rounded
from tools.evaluation.wire.calls import CallPlan, CallSpec
from tools.evaluation.wire.jobs.oracle import OracleAnswer, OracleJob
from tools.float8 import is_float8
from tools.problems import load_problem
from tools.records import Problem

CALLS = 400
PRODUCT = """
import torch


def product(x, y):
    return (x @ y).sum(1, keepdim=True)


def example_inputs():
    return torch.rand(1, 127), torch.randn(127, 67)
"""
"""One element, which is now and then near zero beside what it is a sum of."""

INVERSE = """
import torch


def inverse(x):
    return torch.linalg.inv(x @ x.T + torch.eye(5))


def example_inputs():
    return (torch.randn(5, 5),)
"""

OF_FLOAT8 = """
import torch


def of_float8(x, scale, weight):
    return (x.float() * scale) @ weight.float().t()


def example_inputs():
    return torch.randn(5, 64).to(torch.float8_e4m3fn), torch.rand(5, 1), torch.randn(7, 64).to(torch.float8_e4m3fn)
"""
MOVED = frozenset({"prim::device", "_to_copy", "clone", "copy_", "detach", "empty_like", "slice", "t", "transpose", "view"})
"""What a GPU does with float8: it converts and moves elements."""


class OnFloat8(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Hears which operators compute with float8."""

    def __init__(self) -> None:
        """Begin with none."""
        super().__init__()  # type: ignore[no-untyped-call]
        self.heard: set[str] = set()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Note an operator that is given float8 and does not only move it."""
        name = func._schema.name.removeprefix("aten::")
        if name not in MOVED and any(isinstance(each, torch.Tensor) and is_float8(each.dtype) for each in tree_leaves((args, kwargs))):
            self.heard.add(name)
        return func(*args, **(kwargs or {}))


@pytest.fixture(scope="module")
def problem(tmp_path_factory: pytest.TempPathFactory) -> Problem:
    """The problem of a product's sum."""
    file = tmp_path_factory.mktemp("product") / "product.py"
    file.write_text(PRODUCT)
    return load_problem(file)


def test_a_result_that_cancels_is_not_wrong_by_chance(problem: Problem, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the reference is lucky in its only element, float32 in another order is right all the same, and a note says so."""

    def in_quarters(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return sum(x[:, start::4] @ y[start::4] for start in range(4)).sum(1, keepdim=True)  # type: ignore[union-attr]

    wrong, notes = _judged(problem, in_quarters, monkeypatch)
    assert wrong == 0
    assert any("more draws of the reference's error" in note for note in notes)


def test_a_short_format_is_wrong_where_results_cancel(problem: Problem, monkeypatch: pytest.MonkeyPatch) -> None:
    """A product of TF32 numbers is wrong all the same, in nearly every call."""

    def in_tf32(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return (rounded(x, ROUNDOFF["tf32"]) @ rounded(y, ROUNDOFF["tf32"])).sum(1, keepdim=True)

    assert _judged(problem, in_tf32, monkeypatch)[0] > 0.9 * CALLS


@pytest.mark.parametrize("distribution", ["times 2^20", oracle.AS_MADE])
def test_hard_inputs_on_which_the_reference_raises_in_float64_are_left_out(
    tmp_path: Path, distribution: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An inverse may be singular in exact arithmetic alone: such hard inputs prove nothing, and only the problem's own have to work."""
    file = tmp_path / "inverse.py"
    file.write_text(INVERSE)
    problem = load_problem(file)
    raised = torch.linalg.LinAlgError("The diagonal element 2 is zero")
    monkeypatch.setattr(tolerance.Oracle, "truth", lambda *_: (_ for _ in ()).throw(raised))
    given, outputs = [torch.ones(5, 5)], [torch.eye(5)]
    if distribution == oracle.AS_MADE:
        with pytest.raises(torch.linalg.LinAlgError):
            judged_on(monkeypatch, problem, given, outputs, distribution=distribution)
    else:
        answer = judged_on(monkeypatch, problem, given, outputs, distribution=distribution)
        assert not answer.calls
        assert answer.notes == ("Inputs “times 2^20” were left out: the reference raises LinAlgError on them in float64, or beside them.",)


@pytest.mark.parametrize("distribution", [oracle.AS_MADE, *distributions.BATTERY])
def test_float8_is_judged_by_operators_that_a_gpu_has(tmp_path: Path, distribution: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A GPU has no absolute values of float8, and next to nothing else: a product of it could not be judged there."""
    file = tmp_path / "of_float8.py"
    file.write_text(OF_FLOAT8)
    draw = torch.Generator().manual_seed(0)
    x, weight = (torch.randint(-3, 4, (rows, 64), generator=draw).to(torch.float8_e4m3fn) for rows in (5, 7))
    scale = torch.ones(5, 1)
    with OnFloat8() as on_float8:
        judged_on(
            monkeypatch, load_problem(file), [x, scale, weight], [(x.float() * scale) @ weight.float().t()], distribution=distribution
        )
    assert not on_float8.heard


def _judged(problem: Problem, candidate: Callable[..., torch.Tensor], monkeypatch: pytest.MonkeyPatch) -> tuple[int, tuple[str, ...]]:
    """Have the oracle judge calls with inputs of known seeds, each by itself: how many are wrong, and what it notes."""
    draw = torch.Generator().manual_seed(0)
    inputs = [(torch.rand(1, 127, generator=draw), torch.randn(127, 67, generator=draw)) for _ in range(CALLS)]
    store = SimpleNamespace(
        parameter_tensors=list,
        input_tensors=lambda call: list(inputs[call]),
        output_tensors=lambda call, _run: [candidate(*inputs[call])],
        forget=lambda _call: None,
        close=lambda: None,
    )
    monkeypatch.setattr(oracle, "tensors_of", lambda *_: store)
    calls = tuple(CallSpec(seed=number, distribution=oracle.AS_MADE, group=str(number)) for number in range(CALLS))
    call_plan = CallPlan(problem=problem.model_dump_json(), shake=None, calls=calls)
    job = OracleJob(call_plans=(call_plan,), skip=((False,) * CALLS,), device="cpu", threads=torch.get_num_threads())
    answers: list[bytes] = []
    oracle.judge(SimpleNamespace(job=job.model_dump_json().encode(), answer=answers.append))  # type: ignore[arg-type]
    answer = OracleAnswer.model_validate_json(answers[0])
    return sum(not output.passed for call in answer.calls for output in call.outputs), answer.notes
