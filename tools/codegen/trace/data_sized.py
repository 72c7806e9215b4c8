"""Parts of an exported program in which data decide sizes or numbers: each becomes one operator of the graph, which is PyTorch's.

A part holds what has such a size, what reads it, and what lies between its operators. All before and after it is as ever.
"""

from __future__ import annotations

import graphlib
import heapq
import operator
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tools.codegen.ir.graph import DataSized, Node, Ref, TensorMeta
from tools.codegen.trace.part_writes import writes

if TYPE_CHECKING:
    from torch import fx

TARGET = "aten.data_sized.default"
"""Of such a node."""
CHECKS = frozenset({"_assert_tensor_metadata", "_assert_scalar", "sym_constrain_range_for_size", "sym_constrain_range", "_assert_async"})
"""Operators without a result that only check what tracing already knows."""
NUMBERS = frozenset({"add", "sub", "mul", "floordiv", "truediv", "mod", "ge", "gt", "le", "lt", "eq", "ne", "getitem"})
"""Functions of Python's `operator` that may stand between the operators of a part."""


class PartError(ValueError):
    """Why a part cannot be one operator."""


@dataclass(frozen=True)
class Part:
    """Operators that become one."""

    members: tuple[fx.Node, ...]
    """In the program's order."""

    @property
    def given(self) -> tuple[fx.Node, ...]:
        """What they read of the values outside."""
        inside = set(self.members)
        return tuple(dict.fromkeys(source for node in self.members for source in node.all_input_nodes if source not in inside))

    @property
    def left(self) -> tuple[fx.Node, ...]:
        """What is read of them outside."""
        inside = set(self.members)
        return tuple(node for node in self.members if any(user not in inside and not is_idle(user) for user in node.users))

    def node(self, name: str, given: Sequence[Any], tree: Callable[[Any], Any], metas: Sequence[TensorMeta]) -> DataSized:
        """Make the operator; `given` and `metas` are of `self.given` and `self.left`, and `tree` reads an argument that is no node."""
        values: dict[str, Ref] = {node.name: DataSized.given(place) for place, node in enumerate(self.given)}
        body = []
        for place, node in enumerate(self.members):
            values[node.name] = Ref(f"value_{place}")
            body.append(Node(f"value_{place}", _target(node), _map(node.args, values, tree), _map(node.kwargs, values, tree), ()))
        left = tuple(values[node.name] for node in self.left)
        return DataSized(name, TARGET, tuple(given), {}, tuple(metas), body=tuple(body), left=left)


def _target(node: fx.Node) -> str:
    target = str(node.target)
    if target.startswith("aten."):
        if target.split(".")[1].endswith("_"):
            raise PartError("what it picks by its data is written in place")
        return target
    name = getattr(node.target, "__name__", "")
    if node.op != "call_function" or getattr(operator, name, None) is not node.target or name not in NUMBERS:
        raise PartError(f"{target} is not an ATen operator")
    return f"operator.{name}.default"


def _map(value: Any, values: dict[str, Ref], tree: Callable[[Any], Any]) -> Any:
    from torch import fx

    if isinstance(value, fx.Node):
        return values[value.name]
    if isinstance(value, tuple | list):
        items = [_map(item, values, tree) for item in value]
        return tuple(items) if isinstance(value, tuple) else items
    if isinstance(value, dict):
        return {key: _map(item, values, tree) for key, item in value.items()}
    return tree(value)


def is_idle(node: fx.Node) -> bool:
    """Whether a node only checks, or is there for what checks alone."""
    if node.op != "call_function":
        return False
    target = str(node.target)
    if target.startswith("aten.") and target.split(".")[1] in CHECKS:
        return True
    return _is_number(node.meta.get("val")) and all(map(is_idle, node.users))


def without_unread(graph: fx.Graph) -> None:
    """Take out what nothing reads, such as what a call has left that failed halfway."""
    for node in reversed(list(graph.nodes)):
        if is_idle(node) or (node.op == "call_function" and not node.users and not writes(str(node.target))):
            graph.erase_node(node)


def in_order(graph: fx.Graph, left_out: frozenset[fx.Node], known: frozenset[fx.Node]) -> Iterator[fx.Node | Part]:
    """Yield what is to be read in order: nodes, and parts in the place of theirs; raises PartError where one cannot be.

    What is `left_out` is not read, and what is `known` has no size of data.
    """
    nodes = [node for node in graph.nodes if node not in left_out and (node in known or not is_idle(node))]
    groups = _groups([node for node in nodes if node not in known])
    if not groups:
        yield from nodes
        return
    home = {member: group for group in groups for member in group}
    while True:
        units = {node: id(home[node]) if node in home else node for node in nodes}
        needs: dict[Any, set[Any]] = {unit: set() for unit in units.values()}
        for node in nodes:
            needs[units[node]] |= {units[source] for source in node.all_input_nodes if source in units and units[source] != units[node]}
        sorter = graphlib.TopologicalSorter(needs)
        try:
            sorter.prepare()
        except graphlib.CycleError as error:
            # what leaves a part and comes back belongs to it
            cycle = set(error.args[1])
            merged = {node for node in nodes if units[node] in cycle}
            home |= dict.fromkeys(merged, merged)
            continue
        break
    yield from _sorted(nodes, units, home, sorter)


def _sorted(
    nodes: Sequence[fx.Node], units: dict[fx.Node, Any], home: dict[fx.Node, set[fx.Node]], sorter: graphlib.TopologicalSorter[Any]
) -> Iterator[fx.Node | Part]:
    """Keep the program's order, a part in the place of its last node."""
    places = {unit: place for place, unit in enumerate(units.values())}
    members: dict[Any, list[fx.Node]] = {}
    for node in nodes:
        members.setdefault(units[node], []).append(node)
    found: list[fx.Node | Part] = []
    ready: list[int] = []
    by_place = {place: unit for unit, place in places.items()}
    while sorter.is_active():
        for unit in sorter.get_ready():
            heapq.heappush(ready, places[unit])
        unit = by_place[heapq.heappop(ready)]
        found.append(Part(tuple(members[unit])) if members[unit][0] in home else members[unit][0])
        sorter.done(unit)
    _check_writes(nodes, found)
    yield from found


def _check_writes(nodes: Sequence[fx.Node], found: Sequence[fx.Node | Part]) -> None:
    """Make sure that no operator which writes in place comes before or after what it did not."""
    order = [node for each in found for node in (each.members if isinstance(each, Part) else (each,))]
    first = next((place for place, (one, other) in enumerate(zip(nodes, order, strict=True)) if one is not other), len(nodes))
    if any(writes(str(node.target)) for node in nodes[first:]):
        raise PartError("it writes in place beside what its data size")


def _groups(nodes: Sequence[fx.Node]) -> list[set[fx.Node]]:
    """Join what has a size or a number of data with all that reads it."""
    kept = set(nodes)
    groups: list[set[fx.Node]] = []
    for node in nodes:
        value = node.meta.get("val")
        is_list = node.target is operator.getitem and isinstance(value, tuple | list)
        if node.op != "call_function" or not (is_list or is_free(value)):
            continue
        group = {node, *(user for user in node.users if user in kept and user.op == "call_function")}
        touching = [other for other in groups if other & group]
        groups = [other for other in groups if not other & group] + [group.union(*touching)]
    return groups


def _is_number(value: Any) -> bool:
    import torch

    return isinstance(value, torch.SymInt | torch.SymFloat | torch.SymBool | bool | int | float)


def is_free(value: Any) -> bool:
    """Whether data decide a number, a size of a tensor or of one among several, or what a sparse tensor holds."""
    import torch
    from torch.fx.experimental.symbolic_shapes import free_unbacked_symbols

    if isinstance(value, tuple | list):
        # an operator's own numbers beside its tensors are not read; lists among its results have no name in a graph
        return any(isinstance(one, tuple | list) or (isinstance(one, torch.Tensor) and is_free(one)) for one in value)
    if _is_number(value):
        return True
    return isinstance(value, torch.Tensor) and (value.layout is not torch.strided or bool(free_unbacked_symbols(value)))
