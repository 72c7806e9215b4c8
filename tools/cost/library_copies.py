"""What the library copies before its products: what no strides let a product walk, and matrices that a part of a batch shares."""

from __future__ import annotations

import math
from collections.abc import Sequence

from tools.codegen.ir.graph import Node, OperatorGraph, Ref
from tools.codegen.schedule.einsum_copies import copied, put_in_order
from tools.hardware.rates import TURNED_SHARE, copy_gbps
from tools.records import ITEM_BYTES, HardwareSheet

WRITTEN_SHARE = 0.6
"""Share of the copy rate at which matrices are written out and read again: 131,072 of 48 by 24 in float32, each of 32 for 4,096 samples,
took about 770 µs (an H100, 2026-11-26, torch 2.11; a layer of its own for each of 32 features)."""
ORDERED_SHARE = 0.95
"""Share of the copy rate at which a kernel of ours puts an operand in order: two of 75 MB took 106 µs where PyTorch's copies took 361 (an
H100, 2026-11-26; protein/triangle_update of the wild suite)."""


def broadcast_copies_us(graph: OperatorGraph, nodes: Sequence[str], sheet: HardwareSheet) -> float:
    """Time in which matrices are written out for the products among some nodes, and read again, microseconds."""
    products = [graph.by_name[name] for name in nodes if graph.by_name[name].op == "matmul"]
    moved = sum(2 * _written_out(graph, node, ref) for node in products for ref in node.args[:2])
    return moved / (WRITTEN_SHARE * copy_gbps(sheet)) / 1e3


def _written_out(graph: OperatorGraph, node: Node, ref: Ref) -> int:
    """Bytes of an operand as it is written out: nothing where its matrices lie as a batch is walked, or where it has one."""
    meta, out = graph.meta(ref), [size[0] for size in node.outputs[0].shape]
    shape = [size[0] for size in meta.shape]
    if len(shape) < 3 or len(node.args) < 2 or any(len(graph.meta(each).shape) < 3 for each in node.args[:2]):
        return 0
    whole = out[:-2]
    own = [1] * (len(whole) - len(shape) + 2) + shape[:-2]
    shared = [size for size, mine in zip(whole, own, strict=True) if mine != size]
    matrices = math.prod(own)
    return meta.numel // matrices * math.prod(whole) * ITEM_BYTES[meta.dtype] if shared and matrices > 1 else 0


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
