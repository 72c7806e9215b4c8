"""Products of batches whose matrices are shared by a part of the batch, as a layer of its own for each feature: `x[..., None, :] @ w`.

PyTorch writes such matrices out for the whole batch. As an einsum each is a product over all rows that it serves.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from string import ascii_lowercase

from tools.codegen.ir.graph import Node, Ref, TensorMeta
from tools.codegen.ir.sizes import is_one
from tools.codegen.rewrite.rewriter import Rewriter

DTYPES = frozenset({"float32", "float16", "bfloat16"})


def shared_matrices(rewriter: Rewriter, node: Node) -> Sequence[Node] | None:
    """Write one as an einsum; none of others."""
    out = node.outputs[0]
    metas = [rewriter.metas.get(ref.name) if isinstance(ref, Ref) and ref.index == 0 else None for ref in node.args[:2]]
    sides = [meta for meta in metas if meta is not None and len(meta.shape) > 2 and meta.dtype in DTYPES]
    if node.op != "matmul" or len(sides) < 2 or len(out.shape) > len(ascii_lowercase) - 3:
        return None
    batch = out.shape[:-2]
    lone = [_lone(meta, batch) for meta in sides]
    if not any(_is_written_out(meta, batch, ones) for meta, ones in zip(sides, lone, strict=True)):
        return None
    letters = ascii_lowercase[: len(batch)]
    rows = "" if is_one(out.shape[-2]) else "x"
    left, right = ("".join(letters[place] for place in _places(meta, batch, ones)) for meta, ones in zip(sides, lone, strict=True))
    drops = (lone[0] if rows else [*lone[0], len(sides[0].shape) - 2], lone[1])
    made = [
        _squeezed(f"{node.name}_{side}", ref, meta, dims)
        for side, ref, meta, dims in zip(("left", "right"), node.args, sides, drops, strict=False)
    ]
    equation = f"{left}{rows}y,{right}yz->{letters}{rows}z"
    product = Node(
        node.name if rows else f"{node.name}_product", "aten.einsum.default", (equation, [ref for _, ref in made]), {},
        (out if rows else TensorMeta((*batch, out.shape[-1]), out.dtype),),
    )  # fmt: skip
    before = [each for each, _ in made if each is not None]
    return (
        (*before, product) if rows else (*before, product, Node(node.name, "aten.unsqueeze.default", (Ref(product.name), -2), {}, (out,)))
    )


def _lone(meta: TensorMeta, batch: Sequence[tuple[int, ...]]) -> list[int]:
    """List an operand's dimensions of one element that a batch has more of."""
    own = meta.shape[:-2]
    return [place for place, size in enumerate(own) if is_one(size) and not is_one(batch[place + len(batch) - len(own)])]


def _places(meta: TensorMeta, batch: Sequence[tuple[int, ...]], ones: Sequence[int]) -> list[int]:
    """List the dimensions of a batch that an operand has."""
    own = len(meta.shape) - 2
    return [place + len(batch) - own for place in range(own) if place not in ones]


def _is_written_out(meta: TensorMeta, batch: Sequence[tuple[int, ...]], ones: Sequence[int]) -> bool:
    """Whether an operand has several matrices, each for several of a batch, which are that along its first dimensions.

    Keys that heads share, along a dimension behind those that have their own, are left as attention knows them.
    """
    own = meta.shape[:-2]
    missing = batch[: len(batch) - len(own)]
    several = [place for place, size in enumerate(own) if place not in ones and not is_one(size)]
    return bool(several) and all(place < several[0] for place in ones) and (bool(ones) or not all(map(is_one, missing)))


def _squeezed(name: str, ref: Ref, meta: TensorMeta, dims: Sequence[int]) -> tuple[Node | None, Ref]:
    if not dims:
        return None, ref
    shape = tuple(size for place, size in enumerate(meta.shape) if place not in dims)
    return Node(name, "aten.squeeze.dims", (ref, list(dims)), {}, (replace(meta, shape=shape),)), Ref(name)
