"""Loops over experts in an exported graph, found by the rows that each picks: steps that are alike, with weights of their own.

What depends on picked rows is a step's, up to the one operator that adds or writes its result at these rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tools.codegen.trace.dispatch.masks import Mask, Masks, NoMaskError, op_of, rank
from tools.codegen.trace.dispatch.row_subsets import OPERATOR

if TYPE_CHECKING:
    from torch import fx

WRITES = {"index_add": True, "index_add_": True, "index_put": False, "index_put_": False}
"""What puts results at rows, and whether it adds them."""
SIZES = ("sym_size", "_assert_scalar")
NO_VALUES = frozenset({"_assert_scalar", "_assert_tensor_metadata", "sym_constrain_range_for_size"})
LEAST = 2
"""Experts from which on a repetition is taken for a loop over them."""


class NoDispatchError(Exception):
    """Says why rows that are picked are none of experts."""


@dataclass(frozen=True)
class Here:
    """A value of the same step, by its place among the step's nodes."""

    place: int


@dataclass(frozen=True)
class Written:
    """The tensor that steps write to, as the step before left it."""


@dataclass(frozen=True)
class Outside:
    """A value of the loop's surroundings, of each step its own or the same for all."""

    nodes: tuple[fx.Node, ...]

    @property
    def is_common(self) -> bool:
        """Whether it is the same for all."""
        return len(set(self.nodes)) == 1


@dataclass(frozen=True)
class Step:
    """An operator of a step, with its arguments in the words of all steps."""

    node: Any
    """Of the first expert."""
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]


@dataclass(frozen=True)
class Loop:
    """A loop over experts."""

    mask: Mask
    """Of the first one."""
    experts: int
    steps: tuple[Step, ...]
    """What one expert does; the last one writes."""
    base: fx.Node
    last: fx.Node
    """The result."""
    members: frozenset[fx.Node]


def loops_over_experts(graph: fx.Graph, constants: Mapping[str, Any]) -> list[Loop]:
    """Find the loops of a graph; raises NoDispatchError where picked rows are in none."""
    masks = Masks(constants)
    picks: dict[fx.Node, Mask] = {}
    asked: list[Mask] = []
    for node in (each for each in graph.nodes if str(each.target) == OPERATOR):
        is_used = any(not _only_asks(user) for user in node.users)
        try:
            mask = masks.read(node.args[0])
        except NoMaskError as error:
            if is_used:
                raise NoDispatchError(str(error)) from error
            continue
        if is_used:
            picks[node] = mask
        else:
            asked.append(mask)
    if any(all((one.chosen, one.number) != (each.chosen, each.number) for each in picks.values()) for one in asked):
        raise NoDispatchError("it asks how many rows an expert has, not only whether there are any")
    owners, writes = _owned(graph, picks)
    found = [_loop(group, picks, owners, writes) for group in _grouped(picks, writes)]
    _check_questions(graph, {loop.mask.chosen for loop in found})
    return found


def _only_asks(node: Any) -> bool:
    """Whether a node only reads how many rows there are, or nothing reads it."""
    return op_of(node) in SIZES or (op_of(node) in ("unbind", "") and all(map(_only_asks, node.users)))


def _owned(graph: fx.Graph, picks: Mapping[fx.Node, Mask]) -> tuple[dict[fx.Node, fx.Node], dict[fx.Node, fx.Node]]:
    """Tell which pick each node depends on, and what each pick's rows are written by."""
    owners: dict[fx.Node, fx.Node] = {pick: pick for pick in picks}
    writes: dict[fx.Node, fx.Node] = {}
    sizes: set[fx.Node] = set()
    for node in graph.nodes:
        if node in picks:
            continue
        own = {owners[each] for each in node.all_input_nodes if each in owners}
        is_sized = any(each in sizes for each in node.all_input_nodes)
        if (own or is_sized) and node.op != "output" and not _is_value(node):
            # all picks have one size in a trace: it is no pick's own
            sizes.add(node)
            continue
        if is_sized and not own:
            raise NoDispatchError("the number of rows that were picked is computed with")
        if not own:
            continue
        if len(own) > 1 or node.op == "output":
            raise NoDispatchError("what is made of picked rows leaves them as they are, or meets others")
        (pick,) = own
        if op_of(node) in WRITES and node.args[0] not in owners:
            if pick in writes:
                raise NoDispatchError("a step of the loop over experts writes twice")
            writes[pick] = node
        else:
            owners[node] = pick
    if picks and len(writes) < len(picks):
        raise NoDispatchError("picked rows are not written back")
    return owners, writes


def _grouped(picks: Mapping[fx.Node, Mask], writes: Mapping[fx.Node, fx.Node]) -> Iterator[list[fx.Node]]:
    """Yield the picks of each loop, in the order in which they write to one tensor after the other."""
    # picks are listed in the order of the graph, and so is what they write
    rest = list(picks)
    while rest:
        group, last = [rest.pop(0)], None
        while last is not group[-1]:
            last = group[-1]
            following = [pick for pick in rest if writes[pick].args[0] is writes[last]]
            if following and _alike(picks[following[0]], picks[last]):
                group.append(following[0])
                rest.remove(following[0])
        yield group


def _alike(one: Mask, other: Mask) -> bool:
    return one.chosen is other.chosen and one.dims == other.dims


def _loop(
    group: Sequence[fx.Node], picks: Mapping[fx.Node, Mask], owners: Mapping[fx.Node, fx.Node], writes: Mapping[fx.Node, fx.Node]
) -> Loop:
    numbers = [picks[pick].number for pick in group]
    if len(group) < LEAST or numbers != list(range(numbers[0], numbers[0] + len(group))):
        raise NoDispatchError("rows are picked for other numbers than those of experts one after the other, or by how many rows those have")
    owned: dict[fx.Node, list[fx.Node]] = {pick: [] for pick in group}
    for node, pick in owners.items():
        if pick in owned:
            owned[pick].append(node)
    runs = [[*owned[pick], writes[pick]] for pick in group]
    if len({len(run) for run in runs}) > 1:
        raise NoDispatchError("experts do not all do the same")
    base: Any = writes[group[0]].args[0]
    before = [base, *(writes[pick] for pick in group[:-1])]
    steps = []
    places = [{node: place for place, node in enumerate(run)} for run in runs]
    for nodes in zip(*runs, strict=True):
        if len({str(node.target) for node in nodes}) > 1 or len({tuple(node.kwargs) for node in nodes}) > 1:
            raise NoDispatchError("experts do not all do the same")
        args = tuple(_together(values, places, before) for values in _zipped([node.args for node in nodes]))
        kwargs = {key: _together([node.kwargs[key] for node in nodes], places, before) for key in nodes[0].kwargs}
        # which rows are picked is the mask's
        steps.append(Step(nodes[0], () if nodes[0] in picks else args, kwargs))
    members = frozenset(node for node, pick in owners.items() if pick in owned) | {writes[pick] for pick in group}
    _check_ends(members, writes[group[-1]])
    return Loop(picks[group[0]], len(group), tuple(steps), base, writes[group[-1]], members)


def _is_value(node: Any) -> bool:
    """Whether a node makes a tensor, or several, and does not only check how many rows were picked."""
    return isinstance(node.meta.get("val"), tuple | list) or hasattr(node.meta.get("val"), "dim")


def _zipped(trees: Sequence[Any]) -> list[Sequence[Any]]:
    if len({len(tree) for tree in trees}) > 1:
        raise NoDispatchError("experts do not all do the same")
    return list(zip(*trees, strict=True))


def _together(values: Sequence[Any], places: Sequence[Mapping[fx.Node, int]], before: Sequence[Any]) -> Any:
    """Write an argument of all steps as one."""
    first = values[0]
    if isinstance(first, tuple | list):
        return [_together(each, places, before) for each in _zipped(values)]
    if not hasattr(first, "all_input_nodes"):
        if any(hasattr(value, "all_input_nodes") or type(value) is not type(first) or value != first for value in values):
            raise NoDispatchError("experts do not all do the same")
        return first
    if all(value is one for value, one in zip(values, before, strict=True)):
        return Written()
    found = {own.get(value) for value, own in zip(values, places, strict=True)}
    if len(found) > 1:
        raise NoDispatchError("experts do not all do the same")
    (place,) = found
    return Outside(tuple(values)) if place is None else Here(place)


def _check_ends(members: frozenset[fx.Node], last: fx.Node) -> None:
    """Make sure that nothing but the result is used by others."""
    for node in members:
        if node is not last and any(user not in members and _is_value(user) and user.users for user in node.users):
            raise NoDispatchError("what a step of the loop over experts makes is used elsewhere")


def _check_questions(graph: fx.Graph, chosen: set[fx.Node]) -> None:
    """Make sure that what was asked for, and answered as if every expert had rows, is asked of the experts' numbers."""
    for node in graph.nodes:
        asked = op_of(node) in ("any", "bincount") or str(node.target) == OPERATOR
        used = any(not _only_asks(user) and op_of(user) not in NO_VALUES for user in node.users)
        if asked and not used and not all(_is_made_of(each, chosen) for each in node.all_input_nodes):
            raise NoDispatchError("whether there are rows is asked of something else than the experts' numbers")


def _is_made_of(node: Any, sources: set[fx.Node]) -> bool:
    inputs = node.all_input_nodes
    return node in sources or (bool(inputs) and all(_is_made_of(each, sources) for each in inputs))


__all__ = ["Here", "Loop", "NoDispatchError", "Outside", "Step", "Written", "loops_over_experts", "rank"]
