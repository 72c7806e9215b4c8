"""What is shown of an output that is wrong."""

from __future__ import annotations

import torch

from tools.evaluation.trusted.numerics import Errors
from tools.evaluation.trusted.picture import FIRST, pictured
from tools.records import TensorSpec, WrongOutput

LIMIT = Errors(1e-6, 2e-6)
SPEC = TensorSpec(name="output0", shape=(4, 100), dtype="float32")


def shown(value: torch.Tensor, right: torch.Tensor, spec: TensorSpec = SPEC) -> WrongOutput:
    """Look at a value beside what is right."""
    return pictured(spec, value, right.double() if right.is_floating_point() else right, right, LIMIT)


def test_the_first_wrong_elements_stand_beside_what_is_right() -> None:
    """Elements that are off are counted, the first are shown with index and both values, and the box holds all of them."""
    right = torch.randn(4, 100) + 2
    value = right.clone()
    value[1:3, 96:] = 0
    found = shown(value, right)
    assert (found.wrong, found.elements, found.box) == (8, 400, ((1, 2), (96, 99)))
    assert [one.index for one in found.first] == [(1, 96), (1, 97), (1, 98), (1, 99), (2, 96), (2, 97)][:FIRST]
    assert [(one.expected, one.got) for one in found.first] == [(float(right[one.index]), 0.0) for one in found.first]
    assert found.factor == 0.0


def test_a_constant_factor_is_told() -> None:
    """An output that is everywhere three times too large says so; one that is off by chance does not."""
    right = torch.randn(4, 100)
    assert shown(3 * right, right).factor == 3.0
    assert shown(right + torch.randn(4, 100), right).factor is None


def test_what_is_not_finite_is_off() -> None:
    """A NaN is shown where the reference has a number, and no other element is."""
    right = torch.randn(4, 100)
    value = right.clone()
    value[3, 7] = torch.nan
    found = shown(value, right)
    assert (found.wrong, found.first[0].index) == (1, (3, 7))
    assert WrongOutput.model_validate_json(found.model_dump_json()).first[0].got != found.first[0].expected


def test_small_errors_everywhere_show_the_worst_element() -> None:
    """Where no element is off by itself, the one with the largest error is shown."""
    right = torch.ones(4, 100)
    value = right.clone()
    value[2, 5] += 4e-7
    assert shown(value, right).first[0].index == (2, 5)


def test_integers_differ_or_not() -> None:
    """Of an integer output every element that is neither the reference's nor the oracle's is off; a scalar has no index."""
    spec = TensorSpec(name="output0", shape=(3,), dtype="int64")
    found = shown(torch.tensor([1, 2, 4]), torch.tensor([1, 2, 3]), spec)
    assert [(one.index, one.expected, one.got) for one in found.first] == [((2,), 3.0, 4.0)]
    assert shown(torch.tensor(5.0), torch.tensor(1.0), SPEC).first[0].index == ()
