"""Which concatenations only lay out operands of products."""

from __future__ import annotations

import pytest

from tests.tools.codegen.harness import traced_text
from tests.tools.codegen.score_samples import LATENT, NAMES, sums
from tools.codegen.ir.operators.joined_operands import joined_operands

SIDES = "q, k = torch.cat([q, q_rope], -1), torch.cat([k, k_rope.expand(-1, 3, -1, -1)], -1)\n    "
FOUND = {
    "written out": (f"{SIDES}return torch.softmax(q @ k.transpose(-1, -2), -1) @ v", 2),
    "the operator": (f"{SIDES}return F.scaled_dot_product_attention(q, k, v)", 2),
    "other widths": (SIDES.replace("[q, q_rope]", "[q_rope, q]") + "return F.scaled_dot_product_attention(q, k, v)", 0),
    "read otherwise": (f"{SIDES}return F.scaled_dot_product_attention(q, k, v), k.relu()", 0),
    "returned": (f"{SIDES}return F.scaled_dot_product_attention(q, k, v), k", 0),
    "no attention": (f"{SIDES}return torch.relu(q @ k.transpose(-1, -2))", 0),
}


@pytest.mark.parametrize("name", FOUND)
def test_concatenations_of_both_operands_are_found(name: str) -> None:
    """Both operands of a product of scores must be joined alike along what it sums, and read by such products alone."""
    body, count = FOUND[name]
    joins = joined_operands(traced_text(sums(body, LATENT.format(""), NAMES))[1])
    assert len(joins) == count
    assert all(set(joins) <= needs for needs in joins.values())
