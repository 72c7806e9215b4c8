"""How long PyTorch takes to put rows in order: its kernels pass over each row once for every few bits of an element.

A selection gives each row a program of up to 1024 threads, which finds the last element wanted digit by digit; a sort of rows passes over
elements and positions once a digit.
"""

from __future__ import annotations

import math

from tools.codegen.ir.graph import Node, OperatorGraph
from tools.hardware import rates
from tools.records import ITEM_BYTES, HardwareSheet

ORDERS = frozenset({"topk", "topk_of_chunks", "sort", "argsort", "msort", "kthvalue"})
"""Operators that put rows in order."""
ROUND_US = 13.0
"""Time of a program that selects from a row of up to 1024 elements, with what is around it: 16,384 rows of 128 elements of which 8 are
wanted take 100 µs on an H100 (132 multiprocessors of 16 such programs; torch 2.11, 2026-11-25). The same gives 162 µs for three selections
of 32,768, 4096 and 4096 rows of 32, 8 and 256 elements, which with ten more launches took 182 µs there."""
DIGITS = 16
"""Passes of a selection over a row that does not fit its threads: two bits each, at a copy's rate. On an H100 (2026-11-26) 64 of 4096
elements, 1024 rows, take 123 µs, by this 142."""
SORT_PASSES = 8
"""Times that a sort reads and writes elements with their positions at a copy's rate. On an H100 (2026-11-26) 4096 rows of 1024 take 168 µs
and 65,536 rows of 64 take 425, by this about 280 both."""


def orders_us(graph: OperatorGraph, nodes: tuple[str, ...], sheet: HardwareSheet) -> float:
    """Time of those among library calls that put rows in order, microseconds."""
    return sum(_order_us(graph, graph.by_name[name], sheet) for name in nodes if graph.by_name[name].op in ORDERS)


def _order_us(graph: OperatorGraph, node: Node, sheet: HardwareSheet) -> float:
    source = graph.meta(node.args[0])
    shape = source.written
    if not shape or source.dtype not in ITEM_BYTES:
        return 0.0
    selects = node.op not in ("sort", "argsort", "msort")
    where = -1 if node.op == "topk_of_chunks" else node.argument(2 if selects else 1, "dim", -1)
    length = shape[where if isinstance(where, int) else -1]
    rows = max(1, math.prod(shape) // max(1, length))
    item, threads = ITEM_BYTES[source.dtype], min(1024, -(-length // 32) * 32)
    held = sheet.sms * min(32, sheet.max_threads_per_sm // threads)
    if not selects:
        return SORT_PASSES * max(sheet.launch_us, rows * length * (item + 8) * 2 / rates.copy_gbps(sheet) / 1e3)
    passing = rows * length * item * DIGITS / rates.copy_gbps(sheet) / 1e3 if length > threads else 0.0
    return max(ROUND_US, rows / held * ROUND_US) + passing
