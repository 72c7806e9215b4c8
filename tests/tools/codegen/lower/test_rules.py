"""The rules by which operators are lowered, and the families they are of."""

from __future__ import annotations

import pytest

from tools.codegen.ir.operators import families
from tools.codegen.ir.operators.pointwise_ops import ARITHMETIC, LOGIC
from tools.codegen.lower import attention, concat, convolution, einsum, loss, matmul, norm, pooling, recurrence, recurrent, reduction
from tools.codegen.lower.rules import RULES

FAMILIES = [
    (families.PRODUCTS, {**matmul.PRODUCT_RULES, **einsum.EINSUM_RULES}),
    (families.STRUCTURES, matmul.STRUCTURE_RULES),
    (families.CONVOLUTIONS, convolution.CONVOLUTION_RULES),
    (families.POOLINGS, pooling.POOLING_RULES),
    (families.ATTENTIONS, attention.ATTENTION_RULES),
    (families.RECURRENT, recurrent.RECURRENT_RULES),
    (families.JOINS, concat.JOIN_RULES),
    (families.LOSSES, loss.LOSS_RULES),
    (families.ROW_OPERATORS, {**reduction.REDUCTION_RULES, **norm.NORM_RULES, **loss.LOSS_RULES}),
]


@pytest.mark.parametrize(("family", "rules"), FAMILIES)
def test_a_family_names_the_operators_that_have_its_rules(family: frozenset[str], rules: dict[str, object]) -> None:
    """What an operator's family says before anything is lowered is what the rules of that family lower."""
    assert set(family) == set(rules)


def test_only_maxima_and_minima_are_in_two_families() -> None:
    """No other operator has a rule that hides another's: `max` and `min` of two tensors are the reduction's to tell."""
    pointwise = {*ARITHMETIC, *LOGIC, *families.CASTS}
    others = [name for _, rules in FAMILIES[:-2] for name in rules] + sorted(families.ROW_OPERATORS)
    assert len(others) == len(set(others))
    assert pointwise & set(others) == {"max", "min"}
    # loops, of steps or over experts, are no operators of PyTorch's: the trace makes them
    assert set(RULES) == pointwise | set(others) | set(recurrence.RECURRENCE_RULES) | set(recurrence.DISPATCH_RULES)
