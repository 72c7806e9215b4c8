"""Which operands of the library's einsum are copied first, and the order of dimensions in which it wants them.

`torch.einsum` permutes both tensors to batch, own and summed letters and makes each of these groups one dimension
(`sumproduct_pair` in aten/src/ATen/native/Linear.cpp); letters of a group that are not neighbours in memory cost a copy.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass, replace

from tools.codegen.ir.expr import LoweringError
from tools.codegen.ir.graph import Node, OperatorGraph, Ref
from tools.codegen.lower.einsum import read_equation

PARTS_DIM = {"slice": 1, "narrow": 1}
"""Argument that says along which dimension an operator takes a part, where it is not the third one."""
PARTS = frozenset({*PARTS_DIM, "chunk", "split", "split_with_sizes", "tensor_split"})
TURNS = frozenset({"permute", "transpose", "t", "mT"})
MOVED = frozenset({"float16", "bfloat16", "float32"})
"""Dtypes that a kernel of ours puts in order."""
MOST_MOVED = 5
"""Dimensions of which it does so; neighbours that stay neighbours are one."""


def copied(graph: OperatorGraph, node: Node) -> Iterator[tuple[Ref, tuple[int, ...]]]:
    """Yield the operands of an einsum that are copied first, each with its dimensions in the order in which they are wanted."""
    try:
        words, out, refs = read_equation(node)
    except LoweringError:
        return
    ones, twos = set(words[0]), set(words[1])
    summed = sorted(letter for letter in words[0] if letter in twos and letter not in out)
    both = [letter for letter in out if letter in ones & twos]
    if not summed:
        # elements are multiplied where they lie
        return
    for word, ref in zip(words, refs, strict=True):
        lies = _lies(graph, ref)
        own = [letter for letter in out if letter in word and letter not in both]
        wanted = [*both, *own, *summed]
        if lies is None or set(wanted) != set(word):
            continue
        long = {letter for letter, sizes in zip(word, graph.meta(ref).shape, strict=True) if set(sizes) != {1}}
        memory = [word[dim] for dim in lies.order if word[dim] in long]
        parts = {word[dim] for dim in lies.parts}
        groups = [[letter for letter in group if letter in long] for group in (both, own, summed)]
        if memory and (memory[-1] in both or not all(_is_run(group, memory, parts) for group in groups)):
            yield ref, tuple(word.index(letter) for letter in wanted)


def put_in_order(graph: OperatorGraph, node: Node) -> dict[Ref, tuple[int, ...]]:
    """Name the operands of an einsum that a kernel of ours puts in order before the library would copy them."""
    return {ref: order for ref, order in copied(graph, node) if graph.meta(ref).dtype in MOVED and _runs(graph, ref, order) <= MOST_MOVED}


def _runs(graph: OperatorGraph, ref: Ref, order: Sequence[int]) -> int:
    """Count the dimensions that are left of a tensor to be put in order, when neighbours that stay neighbours are one."""
    lies = _lies(graph, ref)
    long = [dim for dim in order if set(graph.meta(ref).shape[dim]) != {1}]
    if lies is None:
        return len(long)
    after = dict(itertools.pairwise(dim for dim in lies.order if dim in long))
    return len(long) - sum(after.get(one) == two and two not in lies.parts for one, two in itertools.pairwise(long))


@dataclass(frozen=True)
class _Lies:
    """How a tensor lies in memory."""

    order: tuple[int, ...]
    """Its dimensions, the one that lies side by side last."""
    parts: frozenset[int] = frozenset()
    """Dimensions of which it has a part: what lies around one does not go on where it ends."""


def _lies(graph: OperatorGraph, ref: Ref) -> _Lies | None:
    """Find how a contiguous tensor or the result of an einsum lies, a part of one, or either turned; None of others."""
    dims = len(graph.meta(ref).shape)
    if graph.meta(ref).contiguous:
        return _Lies(tuple(range(dims)))
    node = graph.by_name.get(ref.name)
    if node is not None and node.op == "einsum":
        return _made(node)
    if node is None or node.op not in PARTS | TURNS or not isinstance(node.args[0], Ref):
        return None
    source = _lies(graph, node.args[0])
    if source is None:
        return None
    if node.op in PARTS:
        dim = int(node.argument(PARTS_DIM.get(node.op, 2), "dim", 0)) % dims
        return replace(source, parts=source.parts | {dim})
    moved = _moved(node, dims)
    places = {dim: place for place, dim in enumerate(moved)}
    return _Lies(tuple(places[dim] for dim in source.order), frozenset(places[dim] for dim in source.parts))


def _made(node: Node) -> _Lies | None:
    """Say how the result of an einsum lies: a batch of one tensor's own letters by the other's; None where nothing is summed."""
    try:
        words, out, _ = read_equation(node)
    except LoweringError:
        return None
    ones, twos = set(words[0]), set(words[1])
    if not (ones & twos) - set(out):
        return None
    groups = ([letter for letter in out if letter in among] for among in (ones & twos, ones - twos, twos - ones))
    return _Lies(tuple(out.index(letter) for group in groups for letter in group))


def _moved(node: Node, dims: int) -> list[int]:
    """Say which dimension of its source each dimension of a turned tensor is."""
    if node.op == "permute":
        return [dim % dims for dim in node.argument(1, "dims")]
    found = list(range(dims))
    one, two = (0, dims - 1) if node.op == "t" else (-2, -1) if node.op == "mT" else (node.argument(1, "dim0"), node.argument(2, "dim1"))
    found[one], found[two] = found[two], found[one]
    return found


def _is_run(group: Sequence[str], memory: Sequence[str], parts: Set[str]) -> bool:
    """Whether letters are neighbours in memory, in that order, and those that follow another are whole."""
    start = memory.index(group[0]) if group else 0
    return list(memory[start : start + len(group)]) == list(group) and not parts & set(group[1:])
