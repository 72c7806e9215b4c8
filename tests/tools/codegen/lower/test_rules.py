"""The rules by which operators are lowered, and the families they are of."""

from __future__ import annotations

import pytest

from tools.codegen.ir import operators
from tools.codegen.ir.pointwise_ops import ARITHMETIC, LOGIC
from tools.codegen.lower import attention, concat, convolution, einsum, loss, matmul, norm, pooling, recurrence, reduction
from tools.codegen.lower.rules import RULES

FAMILIES = [
    (operators.PRODUCTS, {**matmul.PRODUCT_RULES, **einsum.EINSUM_RULES}),
    (operators.STRUCTURES, matmul.STRUCTURE_RULES),
    (operators.CONVOLUTIONS, convolution.CONVOLUTION_RULES),
    (operators.POOLINGS, pooling.POOLING_RULES),
    (operators.ATTENTIONS, attention.ATTENTION_RULES),
    (operators.JOINS, concat.JOIN_RULES),
    (operators.LOSSES, loss.LOSS_RULES),
    (operators.ROW_OPERATORS, {**reduction.REDUCTION_RULES, **norm.NORM_RULES, **loss.LOSS_RULES}),
]


@pytest.mark.parametrize(("family", "rules"), FAMILIES)
def test_a_family_names_the_operators_that_have_its_rules(family: frozenset[str], rules: dict[str, object]) -> None:
    """What an operator's family says before anything is lowered is what the rules of that family lower."""
    assert set(family) == set(rules)


def test_only_maxima_and_minima_are_in_two_families() -> None:
    """No other operator has a rule that hides another's: `max` and `min` of two tensors are the reduction's to tell."""
    pointwise = {*ARITHMETIC, *LOGIC, *operators.CASTS}
    others = [name for _, rules in FAMILIES[:-2] for name in rules] + sorted(operators.ROW_OPERATORS)
    assert len(others) == len(set(others))
    assert pointwise & set(others) == {"max", "min"}
    # a loop is no operator of PyTorch's: the trace makes it
    assert set(RULES) == pointwise | set(others) | set(recurrence.RECURRENCE_RULES)
