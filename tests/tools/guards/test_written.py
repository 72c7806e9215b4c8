"""Guards of files that write to their arguments: those have to be written where they lie."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from tests.tools.guards.cases import WORK, loaded
from tools.guards import contract_of, guarded
from tools.records import ABI, Problem, ProblemForm, TensorSpec

NEW = """
import torch


class ModelNew(torch.nn.Module):
    def forward(self, guard, x):
        guard.add_(x)
        return guard.sum()
"""


@pytest.fixture(scope="module")
def made() -> Any:
    """A module that adds to its first argument, which has a name that the guard uses itself."""
    specs = tuple(TensorSpec(name=name, shape=(4, 6), dtype="float32") for name in ("guard", "x"))
    outputs = (TensorSpec(name="output0", shape=(), dtype="float32"), TensorSpec(name="written_guard", shape=(4, 6), dtype="float32"))
    abi = ABI(arguments=specs, outputs=outputs, written=("guard",))
    problem = Problem(name="added", form=ProblemForm.KERNELBENCH, entry="Model", source="class Model: pass", abi=abi, work=WORK)
    return loaded(guarded(NEW, contract_of(problem, ()))).ModelNew()


def test_an_argument_in_order_is_written(made: Any) -> None:
    """Nothing is copied, and what is only read may lie as it likes."""
    total, x = torch.zeros(4, 6), torch.arange(24.0).view(6, 4).T
    assert made(total, x) == 276
    assert torch.equal(total, x)


def test_parts_of_one_buffer_that_are_apart_are_written(made: Any) -> None:
    """Layers of one cache say: they share a storage, and no element."""
    both = torch.zeros(8, 6)
    made(both[:4], both[4:] + 1)
    made(both[4:], both[:4])
    assert torch.equal(both, torch.ones(8, 6))


def test_an_argument_out_of_order_is_refused(made: Any) -> None:
    """A copy of it would be written in its stead: also after right calls."""
    made(torch.zeros(4, 6), torch.zeros(4, 6))
    with pytest.raises(ValueError, match="guard is written to and is not contiguous"):
        made(torch.zeros(6, 4).T, torch.zeros(4, 6))


def test_an_argument_that_overlaps_another_is_refused(made: Any) -> None:
    """What is read would change meanwhile; memory is looked at where a call is not as the one before."""
    both = torch.zeros(7, 6)
    with pytest.raises(ValueError, match="guard is written to and shares memory with x"):
        type(made)()(both[:4], both[3:])


def test_a_tensor_that_is_given_twice_is_refused(made: Any) -> None:
    """Its shapes are right, and every call looks for it."""
    made(torch.zeros(4, 6), torch.zeros(4, 6))
    x = torch.zeros(4, 6)
    with pytest.raises(ValueError, match="guard is written to and shares memory with x"):
        made(x, x)
