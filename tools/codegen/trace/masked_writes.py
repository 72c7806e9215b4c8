"""Writes at a mask, as `x[mask] -= 1` or `x[mask] = y[mask].clamp(-3, 3)`: a choice for each element of what it is where the mask holds.

PyTorch picks the elements, computes with as many as there are and puts them back. What is computed of each alone may as well be computed
of all. A write whose value is anything else stays what it is.
"""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import torch
from torch.utils import _pytree as pytree

from tools.codegen.ir.operators.families import CASTS
from tools.codegen.ir.operators.pointwise_ops import ARITHMETIC, LOGIC
from tools.codegen.trace.data_sized import is_free, is_idle, without_unread
from tools.codegen.trace.memories import storage_of
from tools.codegen.trace.part_writes import VIEW_LIKE, writes
from tools.codegen.trace.program_reader import RUNNING

if TYPE_CHECKING:
    from torch import fx

ELEMENTWISE = frozenset({*ARITHMETIC, *LOGIC, *CASTS, "clone", "detach", "alias", "zeros_like", "ones_like", "full_like"} - {"max", "min"})
"""Operators that make each element of those in its place alone."""
DIVIDES = frozenset({"floor_divide", "remainder", "fmod", "div"})
"""Operators that whole numbers may not be given for what nobody picks, unless by one number: some divide by zero."""
PLACES = frozenset({"where.default", "nonzero_numpy.default"})
"""Operators that give the positions where a mask holds, one tensor for each dimension."""
PICKS = frozenset({"index.Tensor", "masked_select.default"})
MOST_NEEDED = 3
"""Arguments that what puts needs."""
PUTS = frozenset({"index_put.default", "index_put_.default"})

State = tuple[Hashable, ...]
"""What a tensor holds: equal ones are alike."""


@dataclass(frozen=True)
class Mask:
    """A mask among the positions of an index."""

    node: fx.Node
    state: State
    place: int
    """The first dimension that it says something of."""

    @property
    def rank(self) -> int:
        """Count the dimensions that it says something of."""
        return int(self.node.meta["val"].dim())


@dataclass(frozen=True)
class Picked:
    """What elements are made of that a mask has picked: the same made of all elements, in the place of the picked ones."""

    whole: fx.Node
    state: State
    """The mask's."""
    rank: int
    """The mask's."""
    after: int
    """Dimensions behind those of the mask."""

    @property
    def by(self) -> tuple[State, int, int]:
        """Say which elements were picked, and where they lie."""
        return self.state, self.rank, self.after


class MaskedWrites:
    """Turns such writes of an exported graph into choices."""

    def __init__(self, graph: fx.Graph) -> None:
        """Take the graph."""
        self.graph = graph
        self._picked: dict[fx.Node, Picked] = {}
        self._given: dict[fx.Node, int] = {}
        """What operators gave, before anything was written to it; equal numbers are the same."""
        self._numbers: dict[Hashable, int] = {}
        self._written: Counter[int | None] = Counter()
        """How often something was written to a memory."""
        self._made: list[fx.Node] = []
        self._positions: dict[fx.Node, State] = {}
        """What a mask held when its positions were asked for."""

    def turn(self) -> None:
        """Walk the graph once, and take out what is read no longer."""
        turned = False
        for node in list(self.graph.nodes):
            if node.op == "call_function":
                turned = self._read(node) or turned
        self._take_out(set(self._made))
        if turned:
            self._take_out(set(self._picked))
            without_unread(self.graph)

    def _read(self, node: Any) -> bool:
        """Read an operator; say whether it was a write that is a choice now."""
        name = _name(node)
        if name in PLACES:
            self._positions[node] = self.state(node.args[0])
        with self.graph.inserting_before(node), torch.no_grad():
            if name in PUTS and self._put(node):
                return True
            found = self._pick(node) if name in PICKS else self._compute(node)
        if found is not None:
            self._picked[node] = found
        # some norms write their means
        written = node.args[:1] if writes(str(node.target)) else node.all_input_nodes if name.split(".")[0] in RUNNING else ()
        self._written.update(storage_of(each) for each in written if isinstance(each, torch.fx.Node))
        return False

    def state(self, value: Any) -> State:
        """Say what a value holds now, so that what is computed twice of the same is the same."""
        if not isinstance(value, torch.fx.Node):
            return (type(value).__name__, repr(value))
        if value not in self._given:
            self._given[value] = self._numbers.setdefault(self._made_of(value), len(self._numbers))
        return (self._given[value], self._written[storage_of(value)])

    def _made_of(self, node: fx.Node) -> Hashable:
        op = _name(node).split(".")[0]
        if node.op != "call_function" or (op not in ELEMENTWISE and op not in VIEW_LIKE) or writes(str(node.target)):
            return node
        leaves, spec = pytree.tree_flatten((node.args, node.kwargs))
        return (str(node.target), str(spec), *map(self.state, leaves))

    def _mask(self, of: Any, index: Any) -> Mask | None:
        """Read the one mask of an index, whether it stands there itself or by its positions; None of any other index."""
        if is_free(of.meta["val"]):
            return None
        given = [(place, one) for place, one in enumerate(index) if one is not None]
        nodes = [one for _, one in given]
        place = given[0][0]
        if len(given) == 1 and nodes[0].meta["val"].dtype == torch.bool:
            found, state = nodes[0], self.state(nodes[0])
        else:
            source = nodes[0].args[0] if nodes[0].target is operator.getitem else None
            if source not in self._positions or [one.args for one in nodes] != [(source, at) for at in range(len(nodes))]:
                return None
            found, state = source.args[0], self._positions[source]
            adjacent = [at for at, _ in given] == list(range(place, place + len(given)))
            if not adjacent or len(given) != found.meta["val"].dim() or self.state(found) != state:
                return None
        shape = found.meta["val"].shape
        fits = found.meta["val"].dtype == torch.bool and shape == of.meta["val"].shape[place : place + len(shape)]
        return Mask(found, state, place) if fits and len(shape) else None

    def _pick(self, node: Any) -> Picked | None:
        of, index = node.args
        mask = self._mask(of, index if isinstance(index, list | tuple) else [index])
        if mask is None or (_name(node) == "masked_select.default" and mask.rank < of.meta["val"].dim()):
            return None
        # it stays what it is when the tensor is written
        whole = self._add(torch.ops.aten.clone.default, (of,))
        return self._at(mask, whole)

    def _at(self, mask: Mask, whole: fx.Node) -> Picked:
        return Picked(whole, mask.state, mask.rank, whole.meta["val"].dim() - mask.place - mask.rank)

    def _unsqueezed(self, node: Any) -> Picked | None:
        found = self._picked.get(node.args[0])
        if found is None:
            return None
        rank = node.meta["val"].dim()
        behind = rank - 1 - node.args[1] % rank
        # a dimension before those of the mask has more of them behind it
        is_after = behind <= found.after
        at = behind if is_after else behind + found.rank - 1
        whole = self._add(torch.ops.aten.unsqueeze.default, (found.whole, -1 - at))
        return replace(found, whole=whole, after=found.after + is_after)

    def _compute(self, node: fx.Node) -> Picked | None:
        """Make of whole tensors what an operator makes of picked elements; None where it is no such operator."""
        if _name(node) == "unsqueeze.default":
            return self._unsqueezed(node)
        leaves, spec = pytree.tree_flatten((node.args, node.kwargs))
        found = [self._picked[leaf] for leaf in leaves if leaf in self._picked]
        first = leaves[0] if leaves else None
        op = _name(node).split(".")[0]
        if not found or len({one.by for one in found}) > 1 or (writes(str(node.target)) and first not in self._picked):
            return None
        if op.removesuffix("_") not in ELEMENTWISE or (op.removesuffix("_") in DIVIDES and not (_is_float(node) or _is_by_a_number(node))):
            return None
        opened = [self._opened(leaf, found[0]) if isinstance(leaf, torch.fx.Node) else leaf for leaf in leaves]
        if any(isinstance(leaf, torch.fx.Node) and one is None for leaf, one in zip(leaves, opened, strict=True)):
            return None
        args, kwargs = pytree.tree_unflatten(opened, spec)
        target: Any = node.target
        return replace(found[0], whole=self._add(target, args, kwargs))

    def _opened(self, value: fx.Node, like: Picked) -> fx.Node | None:
        """Give a value the dimensions of whole tensors; None where it has some of what was picked otherwise."""
        if value in self._picked:
            return self._picked[value].whole if self._picked[value].by == like.by else None
        held = value.meta.get("val")
        if not isinstance(held, torch.Tensor) or is_free(held):
            return None
        shape, after = list(held.shape), like.after
        if len(shape) <= after:
            return value
        place = len(shape) - after - 1
        if shape[place] != 1:
            return None
        opened = [*shape[:place], *[1] * like.rank, *shape[place + 1 :]]
        return value if opened == shape else self._add(torch.ops.aten.reshape.default, (value, opened))

    def _put(self, node: Any) -> bool:
        """Write what is put where a mask holds as a choice; False where that is no choice of whole tensors."""
        of, index, value = node.args[:3]
        accumulate = node.args[3] if len(node.args) > MOST_NEEDED else node.kwargs.get("accumulate", False)
        mask = self._mask(of, index)
        whole = self._opened(value, self._at(mask, of)) if mask is not None else None
        if mask is None or whole is None or not _fits(whole.meta["val"], of.meta["val"]):
            return False
        if accumulate:
            whole = self._add(torch.ops.aten.add.Tensor, (of, whole))
        shape, after = mask.node.meta["val"].shape, self._at(mask, of).after
        flags = self._add(torch.ops.aten.reshape.default, (mask.node, [*shape, *[1] * after])) if after else mask.node
        put = self._add(torch.ops.aten.where.self, (flags, whole, of))
        if writes(str(node.target)):
            put = self._add(torch.ops.aten.copy_.default, (of, put))
            self._written[storage_of(of)] += 1
        node.replace_all_uses_with(put)
        self.graph.erase_node(node)
        return True

    def _take_out(self, among: set[fx.Node]) -> None:
        """Take out those that nobody reads but one another; a write goes with the tensor that is written."""
        gone: set[fx.Node] = set()
        left = among
        while gone != left:
            gone = left
            left = {
                node
                for node in gone
                if all(user in gone or is_idle(user) for user in node.users) and not (writes(str(node.target)) and node.args[0] not in gone)
            }
        for node in list(self.graph.nodes):
            if is_idle(node) and not gone.isdisjoint(node.all_input_nodes):
                gone.add(node)
        for node in reversed(list(self.graph.nodes)):
            if node in gone:
                self.graph.erase_node(node)

    def _add(self, target: Callable[..., Any], args: Sequence[Any], kwargs: Any = None) -> fx.Node:
        """Add an operator, and find out what it gives."""
        made = self.graph.call_function(target, tuple(args), kwargs or {})
        held = pytree.tree_map(lambda each: each.meta["val"] if isinstance(each, torch.fx.Node) else each, (made.args, made.kwargs))
        made.meta["val"] = target(*held[0], **held[1])
        self._made.append(made)
        return made


def _name(node: fx.Node) -> str:
    """Name an operator and its overload; nothing for what is not ATen's."""
    target = str(node.target)
    return target.removeprefix("aten.") if target.startswith("aten.") else ""


def _is_float(node: fx.Node) -> bool:
    return bool(node.meta["val"].is_floating_point())


def _is_by_a_number(node: fx.Node) -> bool:
    """Whether all elements are divided by one number, by which each can be: the least whole number has no quotient by -1."""
    return len(node.args) > 1 and isinstance(node.args[1], int | float) and node.args[1] not in (0, -1)


def _fits(value: torch.Tensor, of: torch.Tensor) -> bool:
    """Whether a value is broadcast to a tensor of the same dtype."""
    if value.dtype != of.dtype or value.dim() > of.dim():
        return False
    return all(one in (1, size) for one, size in zip(value.shape[::-1], of.shape[::-1], strict=False))
