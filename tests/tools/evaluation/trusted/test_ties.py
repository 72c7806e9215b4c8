"""Inputs whose elements tie are noticed where the reference puts them in order."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from tools.evaluation.trusted.inputs import CHANGED, unusable
from tools.evaluation.trusted.reference import DeclaredReference
from tools.evaluation.trusted.ties import Ties
from tools.problems import load_problem

DISTINCT, EQUAL = torch.tensor([[4.0, 1.0, 3.0, 2.0]]), torch.tensor([[4.0, 1.0, 4.0, 1.0]])
Operator = Callable[[torch.Tensor], object]


def met(operator: Operator, x: torch.Tensor) -> bool:
    """Say whether an operator puts equal elements of a tensor in order."""
    with Ties() as ties:
        operator(x)
    return ties.met


@pytest.mark.parametrize("operator", [lambda x: x.topk(2), lambda x: x.sort(), lambda x: torch.argsort(x, dim=-1)])
def test_equal_elements_in_order_are_noticed(operator: Operator) -> None:
    """A selection or a sort of equal elements has no one answer."""
    assert met(operator, EQUAL)
    assert not met(operator, DISTINCT)


@pytest.mark.parametrize("operator", [lambda x: x.argmax(-1), lambda x: x.max(-1), lambda x: torch.sort(x, stable=True)])
def test_what_names_the_first_has_no_ties(operator: Operator) -> None:
    """Maxima name the first of equal elements, and stable sorts keep their order."""
    assert not met(operator, EQUAL)


def test_ties_that_are_not_picked_do_not_matter() -> None:
    """Of a selection those elements count that are picked, and the first that is not."""
    assert not met(lambda x: x.topk(2), torch.tensor([4.0, 3.0, 2.0, 1.0, 1.0]))
    assert met(lambda x: x.topk(2), torch.tensor([4.0, 3.0, 3.0, 1.0]))
    assert met(lambda x: x.topk(1, largest=False), torch.tensor([4.0, 1.0, 1.0]))


def test_neighbours_within_float32s_rounding_tie() -> None:
    """Another way of computing in float32 may turn them round."""
    assert met(lambda x: x.topk(1), torch.tensor([1.0, 1.0 + 2.0**-23]))
    assert not met(lambda x: x.topk(1), torch.tensor([1.0, 1.0 + 2.0**-18]))


def test_what_is_only_nearly_equal_is_told_apart() -> None:
    """Equal to the last bit stays equal however it is computed; neighbours within rounding may not."""
    for x, inexact in ((EQUAL, False), (torch.tensor([[1.0, 1.0 + 2.0**-23]]), True)):
        with Ties() as ties:
            x.sort()
        assert (ties.met, ties.inexact) == (True, inexact)


def test_changed_inputs_whose_order_is_shown_are_of_use(tmp_path: Path) -> None:
    """Indices say in which order equal elements were taken, so that they can be judged; a sum of indices does not, nor inputs made hard."""
    for result, useful in (("i", True), ("i.sum(-1)", False)):
        file = tmp_path / f"best{useful}.py"
        body = f"def best(x):\n    v, i = x.topk(2)\n    return v, {result}\n"
        file.write_text(f"import torch\n\n\n{body}\n\ndef example_inputs():\n    return (torch.rand(1, 4),)\n")
        reference = DeclaredReference(load_problem(file), "cpu")
        assert (unusable(reference, [EQUAL], CHANGED) == "") is useful
        assert "equal elements in order" in unusable(reference, [EQUAL], "sparse")


def test_a_condition_of_torchs_own_is_no_hindrance() -> None:
    """`torch.cond` runs under the watch, and what is put in order beside it is seen."""

    def steps(x: torch.Tensor) -> object:
        return torch.cond(x.sum() > 0, lambda v: v + 1, lambda v: v - 1, (x,)).topk(2)

    assert met(steps, EQUAL)
    assert not met(steps, DISTINCT)
