"""What PyTorch's einsum does beside its product: operands are copied where no strides say how a batched product should walk them.

`torch.einsum` permutes both tensors to batch, own and summed letters and makes each of these groups one dimension
(`sumproduct_pair` in aten/src/ATen/native/Linear.cpp); letters of a group that are not neighbours in memory cost a copy.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tools.codegen.ir.expr import LoweringError
from tools.codegen.ir.graph import Node, OperatorGraph, Ref
from tools.codegen.lower.einsum import read_equation
from tools.hardware.rates import copy_gbps
from tools.records import ITEM_BYTES, HardwareSheet

TURNED_SHARE = 0.27
"""Share of the copy rate at which such a copy goes, from one order of dimensions to another: about 700 µs for 268 MB of halves, twice in
one call (an H100, 2026-11-25, torch 2.11; decode/paged_decode of the wild suite, less what its other kernels take)."""


def einsum_copies_us(graph: OperatorGraph, nodes: Sequence[str], sheet: HardwareSheet) -> float:
    """Time of the copies of all einsums among some nodes, microseconds."""
    refs = (ref for name in nodes if graph.by_name[name].op == "einsum" for ref in copied(graph, graph.by_name[name]))
    metas = (graph.meta(ref) for ref in refs)
    return sum(2 * meta.numel * ITEM_BYTES[meta.dtype] for meta in metas) / (copy_gbps(sheet) * TURNED_SHARE) / 1e3


def copied(graph: OperatorGraph, node: Node) -> Iterator[Ref]:
    """Yield the operands of an einsum that are copied first."""
    try:
        words, out, refs = read_equation(node)
    except LoweringError:
        return
    ones, twos = set(words[0]), set(words[1])
    summed = [letter for letter in words[0] if letter in twos and letter not in out]
    both = [letter for letter in out if letter in ones & twos]
    if not summed:
        # elements are multiplied where they lie
        return
    for word, ref in zip(words, refs, strict=True):
        meta = graph.meta(ref)
        long = {letter for letter, sizes in zip(word, meta.shape, strict=True) if set(sizes) != {1}}
        memory = [letter for letter in word if letter in long]
        own = [letter for letter in out if letter in word and letter not in both]
        groups = [[letter for letter in group if letter in long] for group in (both, own, summed)]
        if meta.contiguous and memory and (memory[-1] in both or not all(_is_run(group, memory) for group in groups)):
            yield ref


def _is_run(group: Sequence[str], memory: Sequence[str]) -> bool:
    """Whether letters are neighbours in memory, in that order."""
    start = memory.index(group[0]) if group else 0
    return list(memory[start : start + len(group)]) == list(group)
