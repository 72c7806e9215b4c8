"""Which values are worth making again where they are read: what natural regions hand to one another."""

from __future__ import annotations

from tools.codegen.ir.graph import Node, OperatorGraph, Ref
from tools.codegen.ir.schedule import Region
from tools.codegen.ir.views import is_view
from tools.codegen.lower.pointwise import POINTWISE_RULES
from tools.codegen.lower.positions.gathers import GATHER_RULES
from tools.codegen.rewrite.recompute import Recomputed
from tools.codegen.schedule.partition import STANDING_ALONE, natural_regions, producers_of
from tools.codegen.schedule.plan import can_generate
from tools.records import ITEM_BYTES

CHEAP = frozenset({*POINTWISE_RULES, *GATHER_RULES})
"""Operators that are made again: one step an element."""
MOST_READ = 1.3
"""Bytes that a copy reads, over those of the value: a write is saved, and the reads of all but one reader are no more."""
FEW = 4
"""Elements that a reduction may take for each of its results to be made again like pointwise operators."""
FEW_OPERATORS = frozenset({"sum", "mean", "amax", "amin"})
SMALL = 65536
"""Bytes below which a value is not made again: writing and reading it costs nothing."""
THIN = 0.25
"""Part of a value's bytes below which what it is made of is read instead of made again, too."""
MOST_COPIES = 32
MOST_STEPS = 4
"""Operators that are looked back through for what the few elements of a reduction are made of."""
MANY = 100
"""Operators from which on another look at the whole has to be worth it."""
WORTH = 0.02
"""Part of what all of these write that the values have to be; in small references one value can keep all that follows in one kernel."""


def recomputable(graph: OperatorGraph) -> tuple[Recomputed, ...]:
    """List copies of values that one natural region makes and others read; all of a value's readers get one, or none does."""
    regions = natural_regions(graph).regions
    home = {name: region for region in regions for name in region.nodes}
    returned = {ref.name for ref in graph.returned}
    found: dict[tuple[str, str], list[str]] = {}
    handed: set[str] = set()
    for node in graph.nodes:
        if node.name not in home or node.name in returned or not _is_cheap(graph, node) or _bytes(graph, Ref(node.name)) < SMALL:
            continue
        readers = _readers(graph, node, home)
        chain = _chain(graph, node)
        if readers and chain and all(_takes(graph, region) for region in regions if region.id in readers):
            handed.add(node.name)
            for region, names in readers.items():
                for name, own in chain.items():
                    found.setdefault((name, region), []).extend([f"{one}_in_{region}" for one in own] or names)
    least = WORTH * sum(_bytes(graph, Ref(name)) for name in home) if len(home) >= MANY else 0.0
    if len(found) > MOST_COPIES or sum(_bytes(graph, Ref(name)) for name in handed) < least:
        return ()
    # a copy comes after those that read it
    order = sorted(found, key=lambda key: graph.order[key[0]], reverse=True)
    return tuple((name, f"{name}_in_{region}", *dict.fromkeys(found[name, region])) for name, region in order)


def _is_cheap(graph: OperatorGraph, node: Node) -> bool:
    return (node.op in CHEAP or _is_of_few(graph, node)) and len(node.outputs) == 1 and node.name not in graph.effects


def _is_of_few(graph: OperatorGraph, node: Node) -> bool:
    """Whether a node sums up a few elements each, as a distance does those of coordinates."""
    return node.op in FEW_OPERATORS and isinstance(node.args[0], Ref) and graph.meta(node.args[0]).numel <= FEW * node.outputs[0].numel


def _takes(graph: OperatorGraph, region: Region) -> bool:
    """Whether a region's kernel can make a value itself."""
    return not any(graph.by_name[name].op in STANDING_ALONE for name in region.nodes) and can_generate(graph, region.nodes)


def _readers(graph: OperatorGraph, node: Node, home: dict[str, Region]) -> dict[str, tuple[str, ...]]:
    """List the nodes of other regions that read a value, seen through views, by region."""
    found: dict[str, tuple[str, ...]] = {}
    own, rest = home[node.name].id, list(graph.users.get(node.name, ()))
    while rest:
        user = rest.pop()
        if is_view(user):
            rest += graph.users.get(user.name, ())
        elif user.name in home and home[user.name].id != own:
            known = found.get(home[user.name].id, ())
            found[home[user.name].id] = tuple(sorted({*known, user.name}, key=lambda name: graph.order[name]))
    return found


def _chain(graph: OperatorGraph, node: Node) -> dict[str, tuple[str, ...]]:
    """Name a value and what is made again for it, each with its readers among them; nothing where that reads much more than the value has.

    What is read is taken back as long as that reads no more. Readers come before what they read.
    """
    readers: dict[str, list[str]] = {node.name: []}
    rest = [node]
    while rest:
        made = rest.pop()
        for name in {name for ref in made.refs for name in producers_of(graph, ref)}:
            source = graph.by_name[name]
            thin = _bytes(graph, Ref(name)) < THIN * _bytes(graph, Ref(node.name))
            again = _is_cheap(graph, source) and _least_read(graph, source) <= MOST_READ * _bytes(graph, Ref(name))
            if name not in readers and again and not thin:
                readers[name] = []
                rest.append(source)
            if name in readers:
                readers[name].append(made.name)
    reads = {(ref, one) for one in readers for ref in graph.by_name[one].refs if not readers.keys() & {*producers_of(graph, ref)}}
    moved = {ref: max(_moved(graph, graph.by_name[one], ref) for other, one in reads if other == ref) for ref, _ in reads}
    if sum(moved.values()) > MOST_READ * _bytes(graph, Ref(node.name)):
        return {}
    return {name: tuple(readers[name]) for name in sorted(readers, key=lambda name: graph.order[name], reverse=True)}


def _least_read(graph: OperatorGraph, node: Node, depth: int = MOST_STEPS) -> float:
    """Bytes that a node reads; fewer where an operand of few elements each is made again of what has fewer than it."""
    return sum(_least(graph, ref, depth) if _is_of_few(graph, node) else _moved(graph, node, ref) for ref in node.refs)


def _least(graph: OperatorGraph, ref: Ref, depth: int) -> float:
    """Bytes of a value, or of the little that it is made of."""
    own, makers = _bytes(graph, ref), [graph.by_name[name] for name in producers_of(graph, ref)]
    if depth == 0 or not makers or not all(_is_cheap(graph, each) for each in makers):
        return own
    return min(
        own,
        sum(_moved(graph, each, one) if each.op in GATHER_RULES else _least(graph, one, depth - 1) for each in makers for one in each.refs),
    )


def _moved(graph: OperatorGraph, node: Node, ref: Ref) -> float:
    """Bytes of an operand that a node reads: of what it gathers from, as much as it makes."""
    return min(_bytes(graph, ref), _bytes(graph, Ref(node.name))) if node.op in GATHER_RULES else _bytes(graph, ref)


def _bytes(graph: OperatorGraph, ref: Ref) -> float:
    meta = graph.meta(ref)
    return float(meta.numel * ITEM_BYTES.get(meta.dtype, 8))
