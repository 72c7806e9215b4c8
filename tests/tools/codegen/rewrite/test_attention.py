"""What attention is given before it runs."""

from __future__ import annotations

import pytest

from tests.tools.codegen.harness import traced_text
from tests.tools.codegen.samples import function
from tools.codegen.rewrite.canonicalize import canonicalize

QUERIES = "torch.randn(2, 3, 8, 16), torch.randn(8, 8, 3)"
ATTENTION = "F.scaled_dot_product_attention(x, x, x, attn_mask={})"


@pytest.mark.parametrize(
    ("mask", "copies"),
    [("y.sin().permute(2, 0, 1)[None]", 1), ("y.sin().sum(2)[None]", 0), ("y.sin().permute(2, 0, 1).expand(2, 3, 8, 8)", 0)],
)
def test_a_mask_is_copied_whose_columns_lie_apart(mask: str, copies: int) -> None:
    """A bias of heads that lie side by side is put in order; one that lies so, or that a copy would make larger, is read as it is."""
    _, graph = traced_text(function(ATTENTION.format(mask), QUERIES, "x, y"))
    graph = canonicalize(graph).graph
    assert sum(node.op == "contiguous" for node in graph.nodes) == copies


def test_a_copied_mask_stays_one_copy() -> None:
    """A graph that is made canonical twice has its mask copied once."""
    _, graph = traced_text(function(ATTENTION.format("y.sin().permute(2, 0, 1)[None]"), QUERIES, "x, y"))
    again = canonicalize(canonicalize(graph).graph).graph
    assert sum(node.op == "contiguous" for node in again.nodes) == 1
