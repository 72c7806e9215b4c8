"""Lower the nodes of a region into one kernel's expressions.

A region is any connected set of pointwise operators and reductions over one common set of dimensions. What lies between
its nodes and the tensors it reads (reshapes, permutations, broadcasts) is seen through; slices are left to the caller.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from tools.codegen.ir.atoms import Dims, ShapeMismatchError
from tools.codegen.ir.builder import Builder, Value
from tools.codegen.ir.constant_tensors import fill_number
from tools.codegen.ir.dtypes import COMPUTE
from tools.codegen.ir.expr import LoweringError
from tools.codegen.ir.geometry import Convolution, Depthwise, Window
from tools.codegen.ir.graph import Formula, LaidOut, Node, OperatorGraph, Placed, Ref
from tools.codegen.ir.grouped import Grouped
from tools.codegen.ir.kernel import Attention, Contraction, Kernel, Lowered, Output, Recurrence
from tools.codegen.ir.recurrent import Recurrent
from tools.codegen.ir.views import is_view, see_through
from tools.codegen.lower.region.flow import SEEN_THROUGH, Flow, places_bits
from tools.codegen.lower.region.shared_totals import with_shared_totals
from tools.codegen.lower.region.walked import check_joins, check_shape, common_reduction, places_of, refuse_twice

Rule = Callable[["Lowering", Node], None]
"""Lowers one node; raises LoweringError with the reason where it cannot."""
Claim = Callable[["Lowering", Node], bool]
"""Lowers one node as part of what the region holds already; False where it is none, and its own rule is asked."""

Formulate = Callable[["Lowering", Node], Lowered]
"""Writes what reads no tensor."""
NOTHING: Mapping[str, Formulate] = MappingProxyType({})


class Lowering:
    """Turns nodes into expressions, one region at a time."""

    builder: type[Builder] = Builder
    is_step = False
    """Whether it lowers a loop's body, whose products are sums over a tile."""

    def __init__(
        self,
        graph: OperatorGraph,
        members: Iterable[str],
        rules: Mapping[str, Rule],
        claims: Sequence[Claim],
        formulas: Mapping[str, Formulate] = NOTHING,
        seen_through: frozenset[str] = SEEN_THROUGH,
    ) -> None:
        """Take the names of the region's nodes, a rule for each operator, and what is asked before the rules.

        With `formulas` what reads no tensor, and what is made of that alone, is computed where it is read. Of a member's views
        `seen_through` names those that are no results.
        """
        self.graph, self.rules, self.claims, self.formulas = graph, rules, claims, formulas
        self.members = sorted(members, key=lambda name: graph.order[name])
        self.flow = Flow(graph, self.members, seen_through)
        self.b = self.builder(graph.traces)
        self.b.constants = graph.constants
        self.b.vanishing = graph.vanishing
        self.known: dict[Ref, Lowered] = {}
        self.reduced: list[tuple[int, ...]] = []
        self.contraction: Contraction | None = None
        self.further: list[Contraction] = []
        """Products besides the first."""
        self.lefts: dict[Ref, Lowered] = {}
        self.rights: dict[Ref, Lowered] = {}
        """Operands of products, as they are read: products of one operand share it."""
        self.pieces: dict[Ref, tuple[Lowered, ...]] = {}
        """Concatenations that are operands of products, by their pieces, which are multiplied each by itself."""
        self.window: Window | None = None
        self.attention: Attention | None = None
        self.depthwise: Depthwise | None = None
        self.convolution: Convolution | None = None
        self.recurrence: Recurrence | None = None
        self.grouped: Grouped | None = None
        self.recurrent: Recurrent | None = None
        self.diagonals: dict[Ref, Lowered] = {}
        """Diagonal matrices, by their vectors."""
        self.weights: dict[Ref, Lowered] = {}
        """Softmaxes of an attention, by the logits they are taken of."""
        self.sinks: dict[Ref, tuple[Lowered, Lowered]] = {}
        """Scores of an attention with one more logit behind them, and what came of them: the scores, and that logit."""
        self.sink: int | None = None
        """That logit, as an expression, where the weights that an attention multiplies are without it."""
        self.summed: tuple[int, int] | None = None
        """A sum of scores along the keys, as an expression, and what is summed."""
        self.log_sum: tuple[int, int] | None = None
        """A log-sum-exp of scores along the keys, as an expression, and what it is of."""
        self.placed: dict[Ref, Placed] = {}
        """Pieces of concatenations that the kernel writes into their places."""

    def run(self) -> Kernel:
        """Lower every member and find the outputs; raises LoweringError."""
        try:
            self.lower_members()
            return self._finish()
        except ShapeMismatchError as error:
            raise LoweringError(str(error)) from error

    def lower_members(self) -> None:
        """Lower every member."""
        for name in self.members:
            self._lower(self.graph.by_name[name])

    def apart(self, left: Lowered, right: Lowered, *summed: Sequence[int]) -> tuple[Lowered, Lowered]:
        """Prepare two operands of a product that is summed here and now, as those of a loop's step are."""
        return left, right

    def keep_distinct(self, dims: Dims) -> None:
        """Have rows, columns and what is summed of such a product stay different dimensions."""

    def value(self, ref: Ref) -> Lowered:
        """Find a value: made here, a view of something, or read from memory."""
        known = self.known.get(ref)
        if known is not None:
            return Lowered(known.value, self.b.atoms.resolve(known.dims))
        node = self.graph.by_name.get(ref.name)
        if node is not None and node.name in self.flow.inside:
            raise LoweringError(f"{node.target} has outputs that are not generated")
        if node is not None and node.op == "scalar_tensor":
            found = Lowered(self.b.cast(self.b.const(node.args[0]), node.outputs[0].dtype), ())
        elif node is not None and (number := fill_number(node)) is not None:
            # under atoms of its own at each use: what it meets says how it is walked
            return Lowered(self.b.const(number), self.b.atoms.dims(node.outputs[0].shape))
        elif node is not None and node.op in self.formulas:
            # under atoms of its own at each use, as well
            return self.formulas[node.op](self, node)
        elif isinstance(node, Formula) and self.formulas:
            self.rules[node.op](self, node)
            return self.known[ref]
        elif node is not None and node.op == "arange" and self.flow.chained and len(node.args) == 1:
            # positions along the rows or the keys of an attention, by what they meet
            dims = self.b.atoms.dims(node.outputs[0].shape)
            return Lowered(self.b.index(dims[0]), dims)
        elif node is not None and is_view(node):
            found = self._through(node, ref)
        else:
            value, dims = self._load(ref)
            self.b.label(value, ref.name)
            found = Lowered(value, dims)
        return self._kept(ref, found)

    def _kept(self, ref: Ref, found: Lowered) -> Lowered:
        """Keep a value for whoever reads it next; places of bits are under atoms of their own at each use."""
        if not (self.flow.multiplies and self.flow.is_of_places(ref)):
            self.known[ref] = found
        return found

    @property
    def products(self) -> tuple[Contraction, ...]:
        """All products so far."""
        return (*((self.contraction,) if self.contraction else ()), *self.further)

    def add_product(self, contraction: Contraction) -> None:
        """Record a product: the region's first, or one more. Raises LoweringError beside an attention, which has two of its own."""
        if self.attention is not None:
            raise LoweringError("an attention and another product do not share a kernel")
        if self.contraction is None:
            self.contraction = contraction
        else:
            self.further.append(contraction)

    def read_again(self, ref: Ref) -> Lowered:
        """Read a value from memory under atoms of its own: what a product walks otherwise than the operators after it."""
        if self.flow.is_internal(ref):
            raise LoweringError("an operand of the product is made in the same region: operands must be in memory")
        node, loads = self.graph.by_name.get(ref.name), len(self.b.loads)
        if node is not None and is_view(node) and len(node.outputs) == 1 and isinstance(node.args[0], Ref):
            try:
                base = self.read_again(node.args[0])
                return Lowered(base.value, see_through(self.b.atoms, node, base.dims))
            except (LoweringError, ShapeMismatchError):
                # the view itself is read instead; what it looks at may be what no kernel reads
                del self.b.loads[loads:]
        value, dims = self._load(ref, again=True)
        return Lowered(value, dims)

    def read_as_it_is(self, ref: Ref) -> Lowered:
        """Read a value from memory under atoms of its own, one for each dimension; the host makes it where it is a view."""
        if self.flow.is_internal(ref):
            raise LoweringError("what a pooling or a convolution looks at is made in the same region: it must be in memory")
        value, dims = self._load(ref, again=True)
        return Lowered(value, dims)

    def _load(self, ref: Ref, *, again: bool = False) -> tuple[Value, Dims]:
        graph = self.graph
        parameter, fixed = ref.name in graph.parameters, ref.name in graph.fixed
        return self.b.load(ref, graph.meta(ref), again=again, parameter=parameter, fixed=fixed)

    def define(self, node: Node, value: Value, dims: Dims, index: int = 0) -> None:
        """Record a member's result."""
        meta = node.outputs[index]
        if index == 0 and isinstance(node, LaidOut):
            dims = (*dims[: node.leading], *dims[node.leading + 1 :], dims[node.leading])
        refuse_twice(self.b.atoms.resolve(dims))
        check_shape(self.b.atoms, node, dims, meta)
        if index == 0 and node.scale is not None:
            value = value * self.value(node.scale).value
        self.b.label(value, node.name if index == 0 else f"{node.name}_{index}")
        self.known[Ref(node.name, index)] = Lowered(value, self.b.atoms.resolve(dims))

    def _through(self, node: Node, ref: Ref) -> Lowered:
        if self.flow.multiplies and places_bits(node):
            dims, (start, _, step) = self.b.atoms.dims(node.outputs[0].shape), node.args[:3]
            return Lowered(self.b.compute(self.b.index(dims[0]) * step + start, COMPUTE[node.outputs[0].dtype]), dims)
        source = node.args[0]
        if ref.index == 0 and len(node.outputs) == 1 and isinstance(source, Ref):
            internal = self.flow.is_internal(source)
            loads, known = len(self.b.loads), dict(self.known)
            try:
                base = self.value(source)
                return Lowered(base.value, see_through(self.b.atoms, node, base.dims))
            except (LoweringError, ShapeMismatchError):
                if internal:
                    raise
                # the view itself is read instead: what was loaded on the way to it is not
                del self.b.loads[loads:]
                self.known = known
        if any(self.flow.is_internal(each) for each in node.refs):
            raise LoweringError(f"{node.target} of an intermediate is not generated")
        value, dims = self._load(ref)
        self.b.label(value, ref.name)
        return Lowered(value, dims)

    def operands(self, refs: Sequence[Ref]) -> list[Lowered]:
        """Find values that will be broadcast against each other; one tensor met with itself along other dimensions is read twice."""
        seen: dict[int, int] = {}
        found = []
        for ref in refs:
            operand = self.value(ref)
            if any(seen.get(atom, place) != place for atom, place in places_of(operand).items()):
                if self.flow.is_internal(ref):
                    raise LoweringError("a tensor that is made in the same region meets itself along other dimensions")
                operand = self.read_again(ref)
                self.b.label(operand.value, ref.name)
            seen |= places_of(operand)
            found.append(operand)
        return found

    def aligned(self, operands: Sequence[Lowered]) -> tuple[list[Lowered], Dims]:
        """Broadcast values against each other: what they share is walked together."""
        dims: Dims = ()
        for operand in operands:
            dims = self.b.atoms.broadcast(dims, operand.dims)
        return list(operands), dims

    def _lower(self, node: Node) -> None:
        if isinstance(node, Placed) and node.place and self.convolution and node.place.piece in self.known:
            self.known[Ref(node.name)], self.placed[Ref(node.name)] = self.known[node.place.piece], node
            return
        if any(claim(self, node) for claim in self.claims):
            return
        rule = self.rules.get(node.op)
        if rule is None:
            raise LoweringError(f"{node.target} has no template")
        self.apply(rule, node)

    def apply(self, rule: Callable[[Any, Node], None], node: Node) -> None:
        """Lower a node by a rule; one that does not know what it meets costs its operator, not all of the reference."""
        try:
            rule(self, node)
        except (LoweringError, ShapeMismatchError):
            raise
        except Exception as error:
            raise LoweringError(f"{node.target}: its rule failed with {type(error).__name__}: {error}") from error

    def _finish(self) -> Kernel:
        outputs = [self._output(ref) for ref in self._written()]
        if not outputs:
            raise LoweringError("nothing outside reads the region")
        self._check_loads(outputs)
        check_joins(self.b, outputs, self.reduced)
        if self.recurrence is not None and (self.is_multiplying or self.attention is not None):
            raise LoweringError("a loop shares its kernel with pointwise operators and reductions only")
        special = (self.contraction, self.window, self.attention, self.depthwise, self.convolution, self.recurrence)
        reduced = self._common_reduction() if self.recurrence is None else self.b.atoms.leaves([a for each in self.reduced for a in each])
        for known in self.known.values():
            # sums that end one another were walked together
            refuse_twice(self.b.atoms.resolve(known.dims))
        written = tuple(outputs) if any(special) else with_shared_totals(self.b, outputs)
        return Kernel(self.b, written, reduced, *special, tuple(self.further), self.grouped, self.recurrent)

    def _written(self) -> Sequence[Ref]:
        """List the members' results that are written."""
        return self.flow.escaping()

    def _output(self, ref: Ref) -> Output:
        known, meta = self.known.get(ref), self.graph.meta(ref)
        if known is None:
            raise LoweringError(f"output {ref.index} of {ref.name} is not generated")
        if meta.dtype not in COMPUTE:
            raise LoweringError(f"{meta.dtype} outputs are not generated")
        dims, placed = self.b.atoms.resolve(known.dims), self.placed.get(ref)
        if placed is None or placed.place is None:
            return Output(ref, meta, known.value.id, dims)
        return Output(ref, self.graph.meta(placed.place.piece), known.value.id, dims, place=placed.place)

    def _check_loads(self, _: Sequence[Output]) -> None:
        """Make sure that no tensor is walked along two of its dimensions at once, as a square matrix and its transpose would be."""
        for load in self.b.loads:
            refuse_twice(self.b.atoms.resolve(load.dims))

    @property
    def is_claimed(self) -> bool:
        """Whether something that shapes the whole kernel is in it already: a product, a pooling, a convolution, a reduction."""
        return bool(self.reduced) or self.is_multiplying

    @property
    def is_multiplying(self) -> bool:
        """Whether that is something else than a reduction."""
        return any(each is not None for each in (self.contraction, self.window, self.depthwise, self.convolution))

    def _common_reduction(self) -> tuple[int, ...]:
        return common_reduction(self.b.atoms, self.reduced, (self.known[ref].dims for ref in self.flow.escaping()))
