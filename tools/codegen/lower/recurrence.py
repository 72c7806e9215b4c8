"""Lower loops, over steps and over experts.

Of the first: one step's operators as expressions that vary along the dimension of steps, and what a step hands to the next.
Products of a step are sums over a tile. The summed dimension of what is carried is another dimension than that of the result, even where
both are one dimension of the state: the tile is turned between them, unless nothing varies along both.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tools.codegen.ir.atoms import Dims
from tools.codegen.ir.builder import Value
from tools.codegen.ir.dispatch import BASE, CHOSEN, Dispatch
from tools.codegen.ir.dtypes import COMPUTE
from tools.codegen.ir.expr import Fold, LoweringError
from tools.codegen.ir.graph import DType, Node, OperatorGraph, Ref
from tools.codegen.ir.grouped import Grouped
from tools.codegen.ir.kernel import Kernel, Lowered, Recurrence, State
from tools.codegen.ir.loop import Loop, StepNumber
from tools.codegen.ir.values.reach import depends_on
from tools.codegen.ir.views import is_view
from tools.codegen.lower.experts.stages import Stages
from tools.codegen.lower.pointwise import POINTWISE_RULES
from tools.codegen.lower.reduction import LOGS_RULES
from tools.codegen.lower.region.lowering import Lowering, Rule


class StepLowering(Lowering):
    """Lowers a loop's body with the expressions of the region around it."""

    is_step = True

    def __init__(self, around: Lowering, loop: Loop, step: int) -> None:
        """Take the region, the loop and the atom of its steps."""
        members = [node.name for node in loop.body.nodes if not is_view(node)]
        super().__init__(loop.body, members, {**around.rules, **LOGS_RULES}, ())
        self.b, self.loop, self.step = around.b, loop, step
        self.turned: list[tuple[int, int]] = []
        self.distinct: list[Dims] = []

    def apart(self, left: Lowered, right: Lowered, *summed: Sequence[int]) -> tuple[Lowered, Lowered]:
        """Turn the summed dimensions of an operand that is made of what is carried."""
        ones, twos = summed or ([len(left.dims) - 1], [max(0, len(right.dims) - 2)])
        if depends_on(self.b, left.value.id, "state"):
            return self._turn(left, ones), right
        if depends_on(self.b, right.value.id, "state"):
            return left, self._turn(right, twos)
        return left, right

    def laid(self, value: Lowered) -> Lowered:
        """Lay a value as all others are laid, where they are."""
        return value

    def keep_distinct(self, dims: Dims) -> None:
        """Note dimensions that must not become one by the rest of the loop, either: a matrix by itself has three of them."""
        self.distinct.append(dims)

    def _turn(self, value: Lowered, places: Sequence[int]) -> Lowered:
        found, dims = value.value, list(self.b.atoms.resolve(value.dims))
        for place in places:
            new = tuple(self._other(atom) for atom in dims[place])
            for there, here in zip(dims[place], new, strict=True):
                found = self.b.turn(found, there, here)
            dims[place] = new
        return Lowered(found, tuple(dims))

    def _other(self, atom: int) -> int:
        """Give the dimension as which products sum along an atom: one for all of them."""
        atoms = self.b.atoms
        for there, here in self.turned:
            if atoms.leaves((there,)) == atoms.leaves((atom,)):
                return here
        self.turned.append((atom, atoms.new(atoms.size(atom))))
        return self.turned[-1][1]

    def settle(self) -> None:
        """Take back the turns of tiles between dimensions along both of which nothing varies."""
        for there, here in self.turned:
            one, two = (self.b.atoms.leaves((atom,)) for atom in (there, here))
            if len(one) == len(two) == 1 and one != two and not self._meet(one[0], two[0]):
                self.b.atoms.unify(one, two)

    def _meet(self, one: int, two: int) -> bool:
        leaves = self.b.atoms.leaves
        return any({one, two} <= set(leaves(tuple(expr.atoms))) for expr in self.b.exprs if expr.op != "turn")

    def _lower(self, node: Node) -> None:
        if node.op == "copy":
            node = Node(node.name, "aten.to.dtype", (node.args[1], DType(node.outputs[0].dtype)), {}, node.outputs)
        super()._lower(Node(node.name, node.target, self._numbered(node.args), self._numbered(node.kwargs), node.outputs))

    def _numbered(self, tree: Any) -> Any:
        """Write numbers that grow with the step by the step's own number."""
        if isinstance(tree, tuple | list):
            return type(tree)(self._numbered(item) for item in tree)
        if isinstance(tree, dict):
            return {key: self._numbered(item) for key, item in tree.items()}
        if not isinstance(tree, StepNumber):
            return tree
        if self.loop.backwards:
            raise LoweringError("a loop that walks backwards and counts its steps is not generated")
        return self.b.index((self.step,)) * tree.by + tree.first

    def _through(self, node: Node, ref: Ref) -> Lowered:
        if node.op != "select" or not self.flow.is_internal(node.args[0]):
            return super()._through(node, ref)
        source = self.value(node.args[0])
        dim = node.args[1] % len(source.dims)
        kept = (*source.dims[:dim], *source.dims[dim + 1 :])
        if not (along := source.dims[dim]):
            return Lowered(source.value, kept)
        # of what is in registers one element is the sum of it and of nothing else
        b, place = self.b, self._numbered(node.args[2])
        counted = b.size(along) + place if isinstance(place, int) and place < 0 else place
        only = b.call("where", b.call("eq", b.index(along), counted), source.value, 0)
        self.reduced.append(along)
        return Lowered(b.cast(b.reduce(Fold.SUM, only, along), source.value.dtype), kept)

    def _load(self, ref: Ref, *, again: bool = False) -> tuple[Value, Any]:
        made = self.graph.by_name.get(ref.name)
        what = made.target if made else "what reads the same input of a step in two ways"
        raise LoweringError(f"{what} inside of a loop is not generated")


def _recurrence(low: Lowering, node: Node) -> None:
    lower_loop(low, node, StepLowering)


def lower_loop(low: Lowering, node: Node, kind: type[StepLowering]) -> None:
    """Lower a loop, its body in one way or another."""
    assert isinstance(node, Loop)
    if low.recurrence is not None or low.is_multiplying or low.is_step:
        raise LoweringError("a loop shares its kernel with pointwise operators and reductions only")
    atoms, b = low.b.atoms, low.b
    step = atoms.new(node.steps)
    body = kind(low, node, step)
    for whole in node.whole:
        body.known[Ref(whole.name)] = low.value(node.args[whole.place])
    for sliced in node.sliced:
        found = low.value(node.args[sliced.place])
        atoms.unify(found.dims[sliced.dim], (step,))
        body.known[Ref(sliced.name)] = Lowered(found.value, (*found.dims[: sliced.dim], *found.dims[sliced.dim + 1 :]))
    started = [_begin(low, body, node.args[one.place], Ref(one.name)) for one in node.carried]
    begin = len(b.exprs)
    body.lower_members()
    inside = range(begin, len(b.exprs))
    if body.is_multiplying:
        raise LoweringError("a pooling, a convolution or an attention inside of a loop is not generated")
    states = []
    for one, (leaf, initial) in zip(node.carried, started, strict=True):
        after = body.laid(body.value(one.after))
        for there, here in zip(leaf.dims, after.dims, strict=True):
            if there and here:
                atoms.unify(there, here)
        last = b.leaf("last", leaf.value.dtype, b.exprs[leaf.value.id].atoms)
        given = b.compute(after.value, leaf.value.dtype)
        states.append(State(leaf.value.id, initial.value.id, given.id, last.id, leaf.dims))
    body.settle()
    for place, left in enumerate(node.left):
        value = body.value(left.ref)
        if left.dim is None:
            at = next(number for number, one in enumerate(node.carried) if one.after == left.ref)
            value = Lowered(Value(b, states[at].last), value.dims)
            low.define(node, value.value, value.dims, index=place)
        else:
            low.define(node, value.value, (*value.dims[: left.dim], (step,), *value.dims[left.dim :]), index=place)
    low.recurrence = Recurrence(step, tuple(states), node.backwards, inside)
    _check(low, body)


def _begin(low: Lowering, body: StepLowering, ref: Ref, name: Ref) -> tuple[Lowered, Lowered]:
    """Make the state of a step and its first value, along the same atoms."""
    atoms, meta = low.b.atoms, body.graph.inputs[name.name]
    if meta.dtype not in COMPUTE:
        raise LoweringError(f"a loop that carries {meta.dtype} is not generated")
    initial = body.laid(low.value(ref))
    dims = atoms.dims(meta.shape)
    for one, two in zip(dims, initial.dims, strict=True):
        if one and two:
            atoms.unify(one, two)
    leaf = low.b.leaf("state", COMPUTE[meta.dtype], (atom for dim in dims for atom in dim))
    low.b.label(leaf, name.name)
    found = body.laid(Lowered(leaf, dims))
    body.known[name] = found
    return found, Lowered(low.b.compute(initial.value, leaf.dtype), initial.dims)


def _check(low: Lowering, body: StepLowering) -> None:
    """Make sure that no value and no product has one atom as two of its dimensions."""
    leaves = low.b.atoms.leaves
    every = [*(load.dims for load in low.b.loads), *(known.dims for known in (*body.known.values(), *low.known.values())), *body.distinct]
    for dims in every:
        flat = [atom for dim in dims for atom in leaves(dim)]
        if len(flat) != len(set(flat)):
            raise LoweringError("two dimensions of a value in the loop are the same dimension of one tensor")


RECURRENCE_RULES: dict[str, Rule] = {"recurrence": _recurrence}
"""Loops."""


def _lower_pointwise(graph: OperatorGraph) -> Kernel:
    """Lower a graph of pointwise operators."""
    return Lowering(graph, graph.by_name, POINTWISE_RULES, ()).run()


def _experts(low: Lowering, node: Node) -> None:
    assert isinstance(node, Dispatch)
    if len(low.members) > 1:
        raise LoweringError("experts share their kernels with nothing else")
    chosen, graph = node.args[CHOSEN], low.graph
    stages = Stages(graph, node, _lower_pointwise).build()
    chosen_meta, result = graph.meta(chosen), node.outputs[0]
    if len(result.shape) != 2 or result.shape[0] != chosen_meta.shape[0]:
        raise LoweringError("experts write to something else than a matrix with a row for each of the numbers' rows")
    for ref in node.refs:
        low.read_as_it_is(ref)
    last = next(each for stage in stages for each in stage.results if each.name == node.value.name)
    dims = low.b.atoms.dims(result.shape)
    value = low.b.leaf("experts", "float32", (atom for dim in dims for atom in dim))
    fixed = frozenset(ref for ref in node.refs if ref.name in graph.fixed)
    low.grouped = Grouped(chosen, node.args[BASE], chosen_meta, result, stages, last, node.adds, node.experts, node.first, fixed, value.id)
    if not all(ref in fixed and graph.meta(ref).contiguous for weight in low.grouped.tables.values() for ref in weight.refs):
        raise LoweringError("experts' weights are neither parameters nor parts of one tensor")
    low.define(node, value, dims)


DISPATCH_RULES: dict[str, Rule] = {"experts": _experts}
"""Rows sent to experts."""
