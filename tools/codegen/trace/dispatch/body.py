"""What one expert does, as a graph over pairs of a row and one of its places: each value is a matrix of pairs by elements."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from tools.codegen.ir.dispatch import EXPERTS, Common, Dispatch, OfExpert, Picked
from tools.codegen.ir.graph import DType, Node, OperatorGraph, Ref, TensorMeta
from tools.codegen.ir.operators.families import CASTS
from tools.codegen.ir.operators.pointwise_ops import ARITHMETIC, LOGIC
from tools.codegen.trace.dispatch.loops import Here, Loop, NoDispatchError, Outside, Step, Written
from tools.codegen.trace.dispatch.masks import COPIES, op_of, rank
from tools.codegen.trace.dispatch.row_counts import known_size
from tools.codegen.trace.dispatch.row_subsets import OPERATOR

if TYPE_CHECKING:
    from torch import fx

VIEWS = frozenset({"view", "reshape", "_unsafe_view", "unsqueeze", "squeeze", "flatten", "expand", "view_as", "reshape_as"}) | (
    COPIES - {"to"}
)
PRODUCTS = frozenset({"linear", "mm", "matmul", "addmm"})
ZEROS = frozenset({"zeros", "zeros_like", "new_zeros"})
EVERY_ROW_OF_ITSELF = frozenset({*ARITHMETIC, *LOGIC, *CASTS})


@dataclass(frozen=True)
class _Position:
    """Where picked pairs are along one dimension of the experts' numbers."""

    dim: int


@dataclass(frozen=True)
class _Kept:
    """What the written tensor holds at the rows, with something added to it."""

    added: Ref | None = None


@dataclass(frozen=True)
class Recognised:
    """The operator of a loop over experts, whose arguments are nodes of torch.fx."""

    node: Dispatch
    args: tuple[fx.Node | None, ...]


class BodyBuilder:
    """Builds the operator of one loop."""

    def __init__(self, loop: Loop) -> None:
        """Take the loop."""
        self.loop = loop
        self.chosen = loop.mask.chosen
        if rank(self.chosen) not in (1, 2):
            raise NoDispatchError("the experts' numbers are no matrix of rows by places")
        self.pairs = (math.prod(size for (size,) in _meta(self.chosen.meta["val"]).shape),)
        self.args: list[fx.Node | None] = [self.chosen, None if self._is_zero(loop.base) else loop.base]
        self.values: list[Any] = []
        self.nodes: list[Node] = []
        self.inputs: dict[str, TensorMeta] = {}
        self.picked: list[Picked] = []
        self.of_expert: list[OfExpert] = []
        self.common: list[Common] = []

    def build(self) -> Recognised:
        """Go through the steps; raises NoDispatchError with the reason where one does not go row by row."""
        for step in self.loop.steps[:-1]:
            self.values.append(self._value(step))
        value, adds = self._written(self.loop.steps[-1])
        body = OperatorGraph((), {}, self.inputs, tuple(self.nodes), value, traces=1)
        result = _meta(self.loop.last.meta["val"])
        parts = tuple(self.picked), tuple(self.of_expert), tuple(self.common)
        node = Dispatch(
            self.loop.last.name, EXPERTS, (), {}, (result,), body, self.loop.experts, self.loop.mask.number, *parts, value, adds
        )
        return Recognised(node, tuple(self.args))

    def _is_zero(self, base: fx.Node) -> bool:
        op = op_of(base)
        if op in ZEROS or (op == "full" and not base.args[1]):
            return True
        alone = base.op == "call_function" and op not in VIEWS - {"clone"} and all(user in self.loop.members for user in base.users)
        if op_of(self.loop.last).endswith("_") and not alone:
            raise NoDispatchError("experts write to a tensor that others have")
        return False

    def _value(self, step: Step) -> Any:
        op = op_of(step.node)
        if str(step.node.target) == OPERATOR:
            return tuple(map(_Position, self.loop.mask.dims))
        source = self._known(step.args[0]) if step.args else None
        if isinstance(source, tuple) or not op:
            return self._part(step, source)
        if op == "index":
            return self._gathered(step)
        if op in VIEWS or (op in ("dropout", "feature_dropout") and not step.args[2]):
            return self._same(step, source)
        if op in ("chunk", "split", "split_with_sizes", "slice"):
            return self._cut(step, source)
        return self._computed(step, op.removesuffix("_") if not op.startswith("__") else op, source)

    def _computed(self, step: Step, op: str, source: Any) -> Any:
        if op == "add" and isinstance(source, _Kept):
            return _Kept(self._ref(step.args[1]))
        if op not in EVERY_ROW_OF_ITSELF | PRODUCTS:
            raise NoDispatchError(f"an expert's {step.node.target} is not one that goes row by row")
        return self._operator(step, op)

    def _known(self, arg: Any) -> Any:
        return self.values[arg.place] if isinstance(arg, Here) else arg

    def _part(self, step: Step, source: Any) -> Any:
        """Take one of several: positions, or pieces."""
        op = op_of(step.node)
        if op == "unbind" and step.args[1:] == (1,):
            return source
        if not op and isinstance(source, tuple):
            return source[step.args[1]]
        if op == "select" and step.args[1] == 1 and isinstance(source, tuple):
            return source[step.args[2]]
        raise NoDispatchError(f"the positions of picked rows go into {step.node.target}")

    def _gathered(self, step: Step) -> Any:
        """Read the rows of a tensor that were picked."""
        places = [self._known(place) for place in step.args[1]]
        while places and places[0] is None:
            places.pop(0)
        dims = tuple(place.dim for place in places if isinstance(place, _Position))
        if len(dims) < len(places) or dims not in ((0,), (0, 1)):
            raise NoDispatchError("picked rows are read in another order than that of the experts' numbers")
        if isinstance(step.args[0], Written):
            return _Kept()
        if not isinstance(step.args[0], Outside) or not (source := _common(step.args[0])):
            raise NoDispatchError("an expert picks rows of its own")
        name = self._input(step.node.name, self._meta(step.node))
        self.picked.append(Picked(name, self._argument(source), pair=len(dims) == rank(self.chosen)))
        return Ref(name)

    def _same(self, step: Step, source: Any) -> Any:
        """See through a view that leaves rows and their elements where they are."""
        if isinstance(source, Ref) and self._meta(step.node).shape == self._of(source).shape:
            return source
        if isinstance(source, _Kept):
            return source
        raise NoDispatchError(f"an expert's {step.node.target} mixes rows")

    def _cut(self, step: Step, source: Any) -> Any:
        """Take a part of each row's elements, or several."""
        op, val = op_of(step.node), step.node.meta["val"]
        dim = (step.args[1] if op == "slice" else (*step.args[2:3], 0)[0]) % rank_of(val)
        last = rank_of(val) - 1
        if not isinstance(source, Ref) or dim != last:
            raise NoDispatchError(f"an expert's {step.node.target} takes a part of the rows")
        if op == "slice":
            start, stop, by = (*step.args[2:], None, None, 1)[:3] if len(step.args) < 5 else step.args[2:5]
            return self._slice(step.node.name, source, int(start or 0), stop, int(by))
        pieces, at = [], 0
        for place, piece in enumerate(val):
            size = known_size(piece.shape[-1]) or 0
            pieces.append(self._slice(f"{step.node.name}_{place}", source, at, at + size, 1))
            at += size
        return tuple(pieces)

    def _slice(self, name: str, source: Ref, start: int, stop: int | None, by: int) -> Ref:
        meta = self._of(source)
        size = meta.shape[1][0]
        start, stop, by = slice(start, stop, by).indices(size)
        shape = (meta.shape[0], (len(range(start, stop, by)),))
        return self._add(Node(name, "aten.slice.Tensor", (source, 1, start, stop, by), {}, (replace(meta, shape=shape),)))

    def _operator(self, step: Step, op: str) -> Ref:
        args = [self._argument_of(step, arg, place, op) for place, arg in enumerate(step.args)]
        kwargs = {key: self._argument_of(step, arg, -1, op) for key, arg in step.kwargs.items()}
        if op == "matmul" and rank_of(step.node.args[1].meta["val"]) != 2:
            raise NoDispatchError("an expert multiplies by something else than a matrix")
        target = re.sub(r"^aten\.\w+\.", f"aten.{op}.", str(step.node.target))
        return self._add(Node(step.node.name, target, tuple(args), kwargs, (self._meta(step.node),)))

    def _argument_of(self, step: Step, arg: Any, place: int, op: str) -> Any:
        import torch

        if isinstance(arg, torch.dtype):
            return DType(str(arg).removeprefix("torch."))
        if isinstance(arg, Here):
            return self._ref(arg)
        if isinstance(arg, Outside):
            return self._outside(arg, matrix=op in PRODUCTS and place == (2 if op == "addmm" else 1))
        if isinstance(arg, Written | list):
            raise NoDispatchError(f"an expert's {step.node.target} reads what experts write")
        return arg

    def _ref(self, arg: Any) -> Ref:
        found = self._known(arg)
        if not isinstance(found, Ref):
            raise NoDispatchError("the positions of picked rows are computed with")
        return found

    def _outside(self, arg: Outside, *, matrix: bool) -> Ref:
        """Have the body read something of an expert's own, or what all have."""
        shape = arg.nodes[0].meta["val"].shape
        if any(node.meta["val"].shape != shape or node.meta["val"].dtype != arg.nodes[0].meta["val"].dtype for node in arg.nodes):
            raise NoDispatchError("experts' weights differ in their shapes or dtypes")
        source = _common(arg)
        meta = _meta(arg.nodes[0].meta["val"])
        if not matrix:
            sizes = tuple(size for size in meta.shape if size != (1,))
            if len(sizes) > 1:
                raise NoDispatchError("an expert computes with a tensor of several dimensions that is no picked row")
            meta = replace(meta, shape=sizes)
        if source is not None and not matrix:
            known = next((one for one in self.common if self.args[one.place] is source), None)
            name = known.name if known else self._input(source.name, meta)
            if known is None:
                self.common.append(Common(name, self._argument(source)))
            return Ref(name)
        own, turned = [_own(node, number) for number, node in enumerate(arg.nodes)], False
        if len({one.turned for one in own}) > 1 or len({one.stack is None for one in own}) > 1:
            raise NoDispatchError("experts' weights are not all given in the same way")
        turned = own[0].turned
        stacks = {one.stack for one in own if one.stack is not None}
        if len(stacks) > 1:
            raise NoDispatchError("experts' weights lie in several tensors")
        given = tuple(stacks) if stacks else tuple(one.node for one in own)
        places = tuple(self._argument(node) for node in given)
        known_own = next((one for one in self.of_expert if one.places == places and one.turned == turned), None)
        if known_own is not None:
            return Ref(known_own.name)
        name = self._input(f"{own[0].node.name}_of_expert", meta)
        self.of_expert.append(OfExpert(name, places, turned))
        return Ref(name)

    def _written(self, step: Step) -> tuple[Ref, bool]:
        """Say what is written at the rows, and whether it is added."""
        op = op_of(step.node)
        adds = op.startswith("index_add")
        rows = [self._known(step.args[2])] if adds else [self._known(each) for each in step.args[1]]
        value = self._known(step.args[3] if adds else step.args[2])
        more = step.kwargs.get("alpha", 1) if adds else (*step.args[3:4], step.kwargs.get("accumulate", False))[0]
        if rows != [_Position(0)] or (adds and (step.args[1] != 0 or more != 1)):
            raise NoDispatchError("results are written to other places than the rows that were picked")
        if adds or (more and isinstance(value, Ref)):
            return self._ref_of(value), True
        if rank(self.chosen) > 1 and not _is_distinct(self.chosen):
            raise NoDispatchError("a row may go to an expert twice, which then writes over its first result")
        if isinstance(value, _Kept) and value.added is not None:
            return value.added, True
        if rank(self.chosen) > 1:
            raise NoDispatchError("experts write over one another's results")
        return self._ref_of(value), False

    def _ref_of(self, value: Any) -> Ref:
        if not isinstance(value, Ref) or self._of(value).shape[1][0] != known_size(self.loop.last.meta["val"].shape[-1]):
            raise NoDispatchError("experts write something else than rows of what they computed")
        return value

    def _add(self, node: Node) -> Ref:
        self.nodes.append(node)
        return Ref(node.name)

    def _input(self, wish: str, meta: TensorMeta) -> str:
        self.inputs[wish] = meta
        return wish

    def _argument(self, node: Any) -> int:
        if node not in self.args[2:]:
            self.args.append(node)
        return self.args.index(node, 2)

    def _of(self, ref: Ref) -> TensorMeta:
        return self.inputs[ref.name] if ref.name in self.inputs else next(node.outputs[0] for node in self.nodes if node.name == ref.name)

    def _meta(self, node: Any) -> TensorMeta:
        """Shape of a value as pairs by elements."""
        val = node.meta["val"]
        known = [known_size(size) for size in val.shape]
        sizes = [size for size in known if size not in (None, 1)]
        if known.count(None) != 1 or len(sizes) > 1 or any(size != 1 for size in known[: known.index(None)]):
            raise NoDispatchError("what an expert computes is no matrix of rows by elements")
        return TensorMeta((self.pairs, (sizes[0] or 1 if sizes else 1,)), str(val.dtype).removeprefix("torch."))


@dataclass(frozen=True)
class _Own:
    """An expert's own tensor: by itself, or as a part of what holds those of all."""

    node: Any
    stack: fx.Node | None
    turned: bool


def _own(node: Any, number: int) -> _Own:
    op = op_of(node)
    if op in ("t", "numpy_T", "mT") or (op == "transpose" and {int(dim) % 2 for dim in node.args[1:3]} == {0, 1} and rank(node) == 2):
        inner = _own(node.args[0], number)
        return replace(inner, turned=not inner.turned)
    if op == "permute" and list(node.args[1]) == [1, 0]:
        inner = _own(node.args[0], number)
        return replace(inner, turned=not inner.turned)
    if op == "select" and node.args[1] == 0 and node.args[2] == number:
        return _Own(node, node.args[0], turned=False)
    if op == "getitem" or (not op and node.op == "call_function" and op_of(node.args[0]) == "unbind" and node.args[1] == number):
        return _Own(node, node.args[0].args[0], turned=False)
    if node.op == "placeholder":
        return _Own(node, None, turned=False)
    raise NoDispatchError("experts' weights are neither parameters nor parts of one tensor")


def _common(arg: Outside) -> fx.Node | None:
    """Find the one value that all steps read; None where each has its own."""
    return arg.nodes[0] if all(_equal(node, arg.nodes[0]) for node in arg.nodes) else None


def _equal(one: Any, other: Any) -> bool:
    """Whether two nodes make the same, by the same views of the same value."""
    if one is other or not hasattr(one, "all_input_nodes"):
        return one is other or bool(type(one) is type(other) and one == other)
    if one.target != other.target or not (op_of(one) in VIEWS or op_of(one) == "to") or len(one.args) != len(other.args):
        return False
    return all(map(_equal, one.args, other.args))


def _is_distinct(node: Any) -> bool:
    """Whether no row has a number twice: they are positions of the largest."""
    while op_of(node) in COPIES:
        node = node.args[0]
    return not op_of(node) and node.op == "call_function" and op_of(node.args[0]) == "topk" and node.args[1] == 1


def rank_of(val: Any) -> int:
    """Count the dimensions of a value, or of the first of several."""
    return int((val[0] if isinstance(val, tuple | list) else val).dim())


def _meta(val: Any) -> TensorMeta:
    shape = tuple((known_size(size) or 0,) for size in val.shape)
    return TensorMeta(shape, str(val.dtype).removeprefix("torch."))
