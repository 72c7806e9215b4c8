"""Names for host functions: what a region computes, in a few words."""

from __future__ import annotations

from collections.abc import Iterable

from tools.codegen.ir.graph import Node
from tools.codegen.templates.shared.naming import Names

QUIET = {"to", "_to_copy", "expand"}
LONG = {
    "scaled_dot_product_attention": "attention",
    "linalg_vector_norm": "norm",
    "masked_fill": "fill",
    "cross_entropy_loss": "cross_entropy",
}
MOST_WORDS = 4


def function_name(nodes: Iterable[Node], names: Names) -> str:
    """Join the operators' names; long regions keep the first and the weightiest words."""
    words: list[str] = []
    for node in nodes:
        word = LONG.get(node.op, node.op).strip("_")
        if node.op not in QUIET and (not words or words[-1] != word):
            words.append(word)
    if len(words) > MOST_WORDS:
        words = [*words[: MOST_WORDS - 1], "chain"]
    name = "_".join(words) or "cast"
    return names.fresh(f"{name}_op" if len(words) == 1 else name)
