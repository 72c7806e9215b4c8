"""Scans that are written with other operators around them: from the end by two flips, exclusive by what is laid before them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from tools.codegen.ir.constant_tensors import fill_number
from tools.codegen.ir.graph import Node, Ref
from tools.codegen.rewrite.rewriter import Rewriter

NEUTRAL = {"cumsum": 0, "cumprod": 1}
"""Scans, and the number that changes nothing in each."""


def reversed_scan(rewriter: Rewriter, node: Node) -> Sequence[Node] | None:
    """Take flip, scan, flip as one scan from the end."""
    made = {each.name: each for each in rewriter.nodes}
    scan = made.get(node.args[0].name)
    first = made.get(scan.args[0].name) if scan is not None and scan.op in NEUTRAL and not scan.kwargs else None
    if scan is None or first is None or first.op != "flip":
        return None
    rank = len(node.outputs[0].shape)
    places = {dims[0] % rank if len(dims) == 1 else None for dims in (node.args[1], first.args[1], (scan.args[1],))}
    used = [user.name for name in (scan.name, first.name) for user in rewriter.graph.users.get(name, ())]
    if len(places) != 1 or None in places or sorted(used) != sorted((scan.name, node.name)) or len(scan.args) > 2:
        return None
    if {scan.name, first.name} & {ref.name for ref in rewriter.graph.returned}:
        return None
    rewriter.nodes = [each for each in rewriter.nodes if each.name not in (scan.name, first.name)]
    return (Node(node.name, f"scan.{scan.op}_reversed.default", (first.args[0], places.pop()), {}, node.outputs),)


def exclusive_scan(rewriter: Rewriter, node: Node) -> Sequence[Node] | None:
    """Take zeros laid or padded before a running sum, or ones before a running product, as the scan of what begins with them."""
    made = {each.name: each for each in rewriter.nodes}
    pieces = node.args[0] if node.op == "cat" else [node.args[0]]
    scan = made.get(pieces[-1].name) if pieces and all(isinstance(piece, Ref) for piece in pieces) else None
    if scan is None or not _is_only_for(rewriter, scan, node):
        return None
    rank, source = len(node.outputs[0].shape), scan.args[0]
    if not rank or rewriter.metas[source.name].dtype != node.outputs[0].dtype:
        return None
    place, number = scan.args[1] % rank, NEUTRAL[scan.op]
    if node.op == "cat":
        dim = node.args[1] if len(node.args) > 1 else node.kwargs.get("dim", 0)
        if len(pieces) != 2 or dim % rank != place or fill_number(made.get(pieces[0].name)) != number:
            return None
        args: tuple[Any, ...] = ([pieces[0], source], place)
    else:
        if not _pads_before(node, rank - 1 - place, number):
            return None
        args = (source, node.args[1], "constant", float(number))
    rewriter.nodes = [each for each in rewriter.nodes if each.name != scan.name]
    joined = Node(f"{node.name}_joined", node.target, args, {}, node.outputs)
    return joined, Node(node.name, scan.target, (Ref(joined.name), place), {}, node.outputs)


def prefix_of_scan(rewriter: Rewriter, node: Node) -> Sequence[Node] | None:
    """Take the beginning of a running sum or product as that of the beginning of what it runs over."""
    made = {each.name: each for each in rewriter.nodes}
    source, dim = node.args[0], node.argument(1, "dim", 0)
    scan = made.get(source.name) if isinstance(source, Ref) else None
    start, step = node.argument(2, "start"), node.argument(4, "step", 1)
    if scan is None or not _is_only_for(rewriter, scan, node) or start not in (None, 0) or step != 1:
        return None
    out, rank = node.outputs[0], len(node.outputs[0].shape)
    if dim % rank != scan.args[1] % rank or rewriter.metas[scan.args[0].name].dtype != out.dtype:
        return None
    rewriter.nodes = [each for each in rewriter.nodes if each.name != scan.name]
    cut = replace(node, name=f"{node.name}_begun", args=(scan.args[0], *node.args[1:]))
    return cut, Node(node.name, scan.target, (Ref(cut.name), scan.args[1]), {}, (replace(out, contiguous=True, unit_last=True),))


def _is_only_for(rewriter: Rewriter, scan: Node, reader: Node) -> bool:
    """Whether a node is a plain scan that one other node reads and nobody else."""
    if scan.op not in NEUTRAL or scan.kwargs or len(scan.args) != 2 or not isinstance(scan.args[0], Ref):
        return False
    users = [user.name for user in rewriter.graph.users.get(scan.name, ())]
    return isinstance(scan.args[1], int) and users == [reader.name] and Ref(scan.name) not in rewriter.graph.returned


def _pads_before(node: Node, place: int, number: int) -> bool:
    """Whether a padding adds a number before one dimension alone, counted from the last."""
    widths, *rest = [*node.args[1:], *(node.kwargs[name] for name in ("mode", "value") if name in node.kwargs)]
    mode, value = (*rest, None)[:2] if rest else ("constant", None)
    others = [width for at, width in enumerate(widths) if at != 2 * place]
    return mode == "constant" and (value or 0) == number and 2 * place < len(widths) and widths[2 * place] > 0 and not any(others)
