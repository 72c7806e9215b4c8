"""What the library's einsum does beside its product: operands are put in order where no strides say how a product should walk them."""

from __future__ import annotations

from collections.abc import Sequence

from tools.codegen.ir.graph import Node, OperatorGraph
from tools.codegen.schedule.einsum_copies import copied, put_in_order
from tools.hardware.rates import copy_gbps
from tools.records import ITEM_BYTES, HardwareSheet

ORDERED_SHARE = 0.95
"""Share of the copy rate at which a kernel of ours puts an operand in order: two of 75 MB took 106 µs where PyTorch's copies took 361 (an
H100, 2026-11-26; protein/triangle_update of the wild suite)."""
TURNED_SHARE = 0.27
"""The same of PyTorch's own copies: of halves about 700 µs for 268 MB, twice in one call (an H100, 2026-11-25; decode/paged_decode of the
wild suite, less its other kernels)."""


def einsum_copies_us(graph: OperatorGraph, nodes: Sequence[str], sheet: HardwareSheet) -> float:
    """Time of the copies of all einsums among some nodes, microseconds."""
    found = [graph.by_name[name] for name in nodes if graph.by_name[name].op == "einsum"]
    return sum(_copy_us(graph, node, sheet) for node in found)


def _copy_us(graph: OperatorGraph, node: Node, sheet: HardwareSheet) -> float:
    """Time of one einsum's copies; of complex numbers none is known."""
    ours, found = put_in_order(graph, node), 0.0
    for ref, _ in copied(graph, node):
        meta = graph.meta(ref)
        if meta.dtype not in ITEM_BYTES:
            continue
        found += 2 * meta.numel * ITEM_BYTES[meta.dtype] / (ORDERED_SHARE if ref in ours else TURNED_SHARE)
    return found / copy_gbps(sheet) / 1e3
