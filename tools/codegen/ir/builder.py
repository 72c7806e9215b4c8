"""The builder of a region's expressions, equal ones shared, and values by which formulas read as formulas: `x * b.call("sigmoid", x)`."""

from __future__ import annotations

from collections.abc import Iterable, Set
from dataclasses import dataclass, replace
from typing import NamedTuple

from tools.codegen.ir.atoms import Atoms, Dims
from tools.codegen.ir.dtypes import COMPUTE, RANK, is_floating, is_signed, is_weak
from tools.codegen.ir.expr import Expr, Fold, Join, Load, LoweringError
from tools.codegen.ir.graph import Ref, TensorMeta
from tools.codegen.ir.sizes import Length, Sizes, Varying, as_number, product
from tools.codegen.ir.value_names import spared

COMPARISONS = {"lt", "le", "gt", "ge", "eq", "ne"}
BOOLEAN = {"and", "or", "not", "xor", "isnan", "isinf"}
FIXED = {**dict.fromkeys((*COMPARISONS, *BOOLEAN), "bool"), "ordered_bits": "int32", "ordered_float": "float32"}
"""Dtypes of what maps give whatever they are given; the last two are between floats and whole numbers in the same order."""
FLOAT_MAPS = {
    "exp", "log", "sqrt", "rsqrt", "sigmoid", "erf", "sin", "cos", "div", "floor", "ceil", "round", "tanh", "expm1", "log1p",
    "log1p_unit", "pow", "exp_fast", "mish", "atan", "exp2", "lgamma", "digamma", "i0e", "i1e",
}  # fmt: skip


class Share(NamedTuple):
    """A condition that holds at few positions."""

    part: float
    """Of all positions."""
    run: int
    """Neighbours for which it is the same."""


class Span(NamedTuple):
    """The part of a dimension that one row of others is made of: parts of neighbouring rows lie one behind the other."""

    begin: int
    stop: int
    """Expressions, over the rows."""
    mean: int
    """Elements of a row, on average."""


class Builder:
    """Holds the expressions of one region."""

    def __init__(self, traces: int) -> None:
        """Start empty."""
        self.atoms = Atoms(traces)
        self.exprs: list[Expr] = []
        self.loads: list[Load] = []
        self.joins: list[Join] = []
        """One at most."""
        self.chunked: dict[int, tuple[tuple[int, ...], int]] = {}
        """Atoms that count chunks of a row: the row's atoms, and the elements of a chunk, of which the last may have fewer."""
        self.spans: dict[int, Span] = {}
        """Atoms along which each row has elements of its own."""
        self.shares: dict[int, Share] = {}
        """Where a condition holds, by expression, as far as that is known."""
        self.constants: tuple[Sizes | Length, ...] = ()
        """Of the graph's file: those that no shape tells."""
        self.vanishing: frozenset[Sizes] = frozenset()
        """Sizes that may be 0 where no input has a dimension of size 0."""
        self.arguments: list[Varying] = []
        self.given: list[Sizes] = []
        """Sizes that no shape tells: the host function is given them as numbers."""
        self.labels: dict[int, str] = {}
        self.remade = 0
        """Expressions that were made once more at another position."""
        self._known: dict[Expr, int] = {}

    def load(self, ref: Ref, meta: TensorMeta, again: bool = False, parameter: bool = False, fixed: bool = False) -> tuple[Value, Dims]:
        """Read a tensor of the region's surroundings, once however often it is used; with `again` under atoms of its own."""
        for place, known in enumerate(self.loads):
            if known.ref == ref and not again and not known.private:
                return self._load_expr(place, known), known.dims
        if meta.dtype not in COMPUTE:
            raise LoweringError(f"{meta.dtype} tensors are not generated")
        self.loads.append(Load(ref, meta, self.atoms.dims(meta.shape), again, parameter, fixed))
        return self._load_expr(len(self.loads) - 1, self.loads[-1]), self.loads[-1].dims

    def _load_expr(self, place: int, load: Load) -> Value:
        atoms = frozenset(atom for dim in load.dims for atom in dim)
        return self._add(Expr("load", (), COMPUTE[load.meta.dtype], atoms, place))

    def const(self, number: bool | float | Varying) -> Value:
        """A number; one that comes from a size becomes an argument of the kernel."""
        if isinstance(number, Varying):
            if number not in self.arguments:
                self.arguments.append(number)
            kind = "weak_int" if all(isinstance(v, int) for v in number.values) else "weak_float"
            return self._add(Expr("argument", (), kind, frozenset(), self.arguments.index(number)))
        kind = "weak_bool" if isinstance(number, bool) else "weak_int" if isinstance(number, int) else "weak_float"
        return self._add(Expr("const", (), kind, frozenset(), (type(number).__name__, repr(number))))

    def size(self, atoms: Iterable[int]) -> Value:
        """The number of elements over `atoms`."""
        return self._add(Expr("size", (), "weak_int", frozenset(), tuple(atoms)))

    def index(self, atoms: tuple[int, ...]) -> Value:
        """The position along `atoms`, flattened in their order."""
        return self._add(Expr("index", (), "int32", frozenset(atoms), atoms))

    def read(self, place: int, positions: tuple[Value, ...], guard: Value | None = None) -> Value:
        """Read one tensor among the loads at a position along each of its dimensions; nothing is read where `guard` is false."""
        args = (*positions, guard) if guard is not None else positions
        atoms = frozenset().union(*(self.exprs[arg.id].atoms for arg in args))
        dtype = COMPUTE[self.loads[place].meta.dtype]
        return self._add(Expr("read", tuple(arg.id for arg in args), dtype, atoms, (place, guard is not None)))

    def number(self, sizes: Sizes) -> Value:
        """A number that is a size: a literal where it is the same in every trace."""
        return self.const(as_number(sizes))

    def count(self, atoms: Iterable[int]) -> Sizes:
        """Count the positions along atoms in every trace."""
        return product((self.atoms.size(atom) for atom in self.atoms.leaves(atoms)), self.atoms.traces)

    def leaves_of(self, expr: Expr) -> frozenset[int]:
        """Name the leaf atoms over which an expression varies."""
        return frozenset(self.atoms.leaves(expr.atoms))

    def apply(self, like: Expr, args: tuple[int, ...]) -> Value:
        """Apply the map of an expression to other arguments."""
        return self._add(replace(like, args=args, atoms=frozenset().union(*(self.exprs[arg].atoms for arg in args))))

    def call(self, op: str, *args: Value | bool | float) -> Value:
        """Apply a map."""
        values = [self.lift(arg) for arg in args]
        dtype = self._result(op, values)
        atoms = frozenset().union(*(self.exprs[v.id].atoms for v in values))
        return self._add(Expr(op, tuple(v.id for v in values), dtype, atoms))

    def cast(self, value: Value, dtype: str) -> Value:
        """Convert to a tensor dtype, rounding as that dtype would."""
        expr = self.exprs[value.id]
        compute = COMPUTE[dtype]
        if expr.op == "const" and (is_floating(compute) or is_signed(compute)):
            return self._add(Expr("cast", (value.id,), compute, expr.atoms, dtype)) if dtype != compute else value
        if expr.dtype == compute == dtype:
            return value
        if (narrow := self._narrowed(value, compute)).id != value.id:
            return self.cast(narrow, dtype)
        return self._add(Expr("cast", (value.id,), compute, expr.atoms, dtype))

    def _narrowed(self, value: Value, dtype: str) -> Value:
        """Add up in 32 bits what is cut to 32 bits or fewer: the upper half of a sum of whole numbers says nothing of the lower."""
        expr = self.exprs[value.id]
        is_long = expr.op == "reduce" and expr.kind is Fold.SUM and expr.dtype == "int64" and self.exprs[expr.args[0]].dtype == "int32"
        return self._add(replace(expr, dtype="int32")) if is_long and dtype == "int32" else value

    def compute(self, value: Value, dtype: str) -> Value:
        """Convert to a compute dtype where it is not that already; half-precision inputs are float32 from their load on."""
        expr = self.exprs[value.id]
        if expr.dtype == dtype or is_weak(expr.dtype):
            return value
        return self._add(Expr("cast", (value.id,), dtype, expr.atoms, dtype))

    def reduce(self, kind: Fold, value: Value, atoms: Iterable[int], *, skips_nan: bool = False) -> Value:
        """Reduce over `atoms`; a maximum may leave out what is no number where it `skips_nan`."""
        expr = self.exprs[value.id]
        chosen = tuple(atoms)
        dtype = "int64" if kind is Fold.SUM and expr.dtype in ("bool", "int32") else expr.dtype
        if kind is Fold.PROD:
            raise LoweringError("a product of more than a few elements is not generated")
        if dtype == "bool":
            raise LoweringError("reductions of booleans other than sums are not generated")
        kept = self.leaves_of(expr) - frozenset(self.atoms.leaves(chosen))
        return self._add(Expr("reduce", (value.id,), dtype, kept, chosen, kind, skips_nan=skips_nan))

    def scan(self, kind: Fold, value: Value, atoms: Iterable[int], backwards: bool = False) -> Value:
        """Accumulate along `atoms`, each position with all before it, or with all after it."""
        expr, chosen = self.exprs[value.id], tuple(atoms)
        # a value that is the same all along them is accumulated too
        varying = expr.atoms | frozenset(self.atoms.leaves(chosen))
        return self._add(Expr("scan", (value.id,), expr.dtype, varying, chosen, kind, backwards))

    def order(self, keys: Value, atoms: Iterable[int], picked: int) -> Value:
        """Take the largest along `atoms`, no two of which are alike, and lay them along another atom, the largest one first."""
        expr, chosen = self.exprs[keys.id], tuple(atoms)
        kept = frozenset(self.atoms.leaves(expr.atoms)) - frozenset(self.atoms.leaves(chosen))
        return self._add(Expr("order", (keys.id,), expr.dtype, kept | {picked}, (chosen, picked), Fold.MAX))

    def pick(self, value: Value, position: Value, atoms: Iterable[int]) -> Value | None:
        """The element at one position along `atoms`, read from memory by itself; none where the value is not one tensor as it stands."""
        expr, chosen = self.exprs[value.id], tuple(atoms)
        if expr.op != "load" or len(self.atoms.leaves(chosen)) != 1:
            return None
        kept = frozenset(self.atoms.leaves(expr.atoms)) - frozenset(self.atoms.leaves(chosen))
        atoms_of = kept | self.exprs[position.id].atoms
        return self._add(Expr("pick", (value.id, position.id), expr.dtype, atoms_of, chosen))

    def turn(self, value: Value, there: int, here: int) -> Value:
        """The same elements along another atom: `here` in the place of `there`."""
        atoms = self.leaves_of(self.exprs[value.id]) - {there} | {here}
        return self._add(Expr("turn", (value.id,), value.dtype, atoms, (there, here)))

    def matrix(self, op: str, args: tuple[Value, ...], sides: tuple[int, int], atoms: frozenset[int]) -> Value:
        """What a template makes of matrices whose two sides lie along two atoms, over `atoms`."""
        return self._add(Expr(op, tuple(value.id for value in args), args[-1].dtype, atoms, sides))

    def join(self, values: Iterable[Value], join: Join) -> Value:
        """Lay values of one dtype one after the other."""
        found = tuple(values)
        self.joins.append(join)
        atoms = frozenset().union(*(self.atoms.leaves(self.exprs[value.id].atoms) for value in found))
        kept = atoms - {atom for part in join.parts for atom in part} | {join.whole}
        dtype = next((value.dtype for value in found if not is_weak(value.dtype)), found[0].dtype)
        return self._add(Expr("join", tuple(value.id for value in found), dtype, kept, join))

    def with_args(self, expr: Expr, args: tuple[Value, ...]) -> Value:
        """Apply an expression's map to other arguments of the same dtypes."""
        atoms = frozenset().union(*(self.atoms.leaves(self.exprs[value.id].atoms) for value in args))
        return self._add(replace(expr, args=tuple(value.id for value in args), atoms=atoms))

    def leaf(self, op: str, dtype: str, atoms: Iterable[int]) -> Value:
        """A value that the template computes itself: the accumulator of a product, a convolution, a pooling; each is another."""
        self.exprs.append(Expr(op, (), dtype, frozenset(atoms)))
        return Value(self, len(self.exprs) - 1)

    def made_of(self, value: Value) -> frozenset[int]:
        """Name every expression that a value is made of, itself among them."""
        return self.behind([value.id])

    def behind(self, exprs: Iterable[int], stops: Set[int] = frozenset()) -> frozenset[int]:
        """Name every expression that some are made of, themselves among them; not what those at which it `stops` are made of."""
        found: set[int] = set()
        stack = [*exprs]
        while stack:
            expr = stack.pop()
            if expr not in found:
                found.add(expr)
                stack += () if expr in stops else self.exprs[expr].args
        return frozenset(found)

    def lift(self, value: Value | bool | float | Varying) -> Value:
        """Make a number a value."""
        return value if isinstance(value, Value) else self.const(value)

    def total_of_mean(self, expr: int) -> int | None:
        """Find the sum that an expression, if it is a mean over dimensions, is made of."""
        record = self.exprs[expr]
        if record.op != "div" or self.exprs[record.args[1]].op != "size" or not self.exprs[record.args[0]].reduces(Fold.SUM):
            return None
        return record.args[0]

    def label(self, value: Value, name: str) -> None:
        """Suggest a variable name for an expression; the first wins."""
        self.labels.setdefault(value.id, spared(name))

    def _result(self, op: str, values: list[Value]) -> str:
        kinds = [self.exprs[v.id].dtype for v in values]
        if op in FIXED:
            return FIXED[op]
        if op == "where":
            kinds = kinds[1:]
        top = max(kinds, key=lambda kind: RANK[kind])
        if op in FLOAT_MAPS and RANK[top] < RANK["weak_float"]:
            return "float32"
        concrete = [kind for kind in kinds if not is_weak(kind)]
        if top == "weak_float" and concrete:
            return "float32"
        if op == "where" and not concrete:
            return {"weak_bool": "bool", "weak_int": "int32", "weak_float": "float32"}[top]
        if is_weak(top) and concrete:
            return max(concrete, key=lambda kind: RANK[kind]) if top != "weak_int" else "int32"
        return top

    def _add(self, expr: Expr) -> Value:
        if expr.op == "add" and (kept := self._undone(expr)) is not None:
            return kept
        known = self._known.get(expr)
        if known is None:
            known = len(self.exprs)
            self.exprs.append(expr)
            self._known[expr] = known
        return Value(self, known)

    def _undone(self, expr: Expr) -> Value | None:
        """Find what a whole number was before another one was taken away that is now added again."""
        inner = self.exprs[expr.args[0]]
        if is_floating(expr.dtype) or inner.op != "sub" or inner.args[1] != expr.args[1]:
            return None
        return Value(self, inner.args[0]) if self.exprs[inner.args[0]].dtype == expr.dtype else None


@dataclass(frozen=True)
class Value:
    """An expression with Python's operators."""

    builder: Builder
    id: int

    def __add__(self, other: Value | float) -> Value:
        """Add."""
        return self.builder.call("add", self, other)

    def __radd__(self, other: float) -> Value:
        """Add to a number."""
        return self.builder.call("add", other, self)

    def __sub__(self, other: Value | float) -> Value:
        """Subtract."""
        return self.builder.call("sub", self, other)

    def __rsub__(self, other: float) -> Value:
        """Subtract from a number."""
        return self.builder.call("sub", other, self)

    def __mul__(self, other: Value | float) -> Value:
        """Multiply."""
        return self.builder.call("mul", self, other)

    def __rmul__(self, other: float) -> Value:
        """Multiply a number."""
        return self.builder.call("mul", other, self)

    def __truediv__(self, other: Value | float) -> Value:
        """Divide."""
        return self.builder.call("div", self, other)

    def __rtruediv__(self, other: float) -> Value:
        """Divide a number."""
        return self.builder.call("div", other, self)

    def __neg__(self) -> Value:
        """Negate."""
        return self.builder.call("neg", self)

    def __lt__(self, other: Value | float) -> Value:
        """Compare."""
        return self.builder.call("lt", self, other)

    def __gt__(self, other: Value | float) -> Value:
        """Compare."""
        return self.builder.call("gt", self, other)

    def __le__(self, other: Value | float) -> Value:
        """Compare."""
        return self.builder.call("le", self, other)

    def __ge__(self, other: Value | float) -> Value:
        """Compare."""
        return self.builder.call("ge", self, other)

    @property
    def dtype(self) -> str:
        """Compute dtype."""
        return self.builder.exprs[self.id].dtype
