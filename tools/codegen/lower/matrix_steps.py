"""Lower loops over steps of small matrices: filters, whose covariances a program holds in registers.

Rows, columns and what a product sums are dimensions of their own, three for each size of a matrix. What lies otherwise where operands
meet, as a matrix and its transpose do, is turned.
"""

from __future__ import annotations

from collections.abc import Sequence

from tools.codegen.ir.builder import Value
from tools.codegen.ir.expr import Fold, LoweringError
from tools.codegen.ir.graph import Node, OperatorGraph, Ref
from tools.codegen.ir.kernel import Lowered
from tools.codegen.ir.loop import Loop
from tools.codegen.ir.sizes import Sizes
from tools.codegen.lower.recurrence import StepLowering, lower_loop
from tools.codegen.lower.region.lowering import Lowering, Rule

WIDEST = 16
"""Rows or columns of a small matrix: a sum of its products is a tile of as many to the power of three."""
ROW, COLUMN, SUMMED = "row", "column", "summed"


class MatrixSteps(StepLowering):
    """Lowers a loop's body of small matrices."""

    def __init__(self, around: Lowering, loop: Loop, step: int) -> None:
        """Take the region, the loop and the atom of its steps."""
        super().__init__(around, loop, step)
        self.rules = {**self.rules, **MATRIX_RULES}
        self.places: dict[tuple[Sizes, str], int] = {}

    def operands(self, refs: Sequence[Ref]) -> list[Lowered]:
        """Find values that will be broadcast against each other, as matrices."""
        return [self.laid(self.value(ref)) for ref in refs]

    def apart(self, left: Lowered, right: Lowered, *summed: Sequence[int]) -> tuple[Lowered, Lowered]:
        """Lay the columns of one operand and the rows of the other along what is summed."""
        if summed:
            raise LoweringError("an einsum of small matrices inside of a loop is not generated")
        return self._laid(left, (ROW, SUMMED)), self._laid(right, (SUMMED, COLUMN) if len(right.dims) > 1 else (SUMMED,))

    def laid(self, value: Lowered) -> Lowered:
        """Lay a value's last two dimensions along rows and columns."""
        return self._laid(value, (ROW, COLUMN))

    def settle(self) -> None:
        """Keep what was turned."""

    def _laid(self, value: Lowered, places: tuple[str, ...]) -> Lowered:
        dims = list(self.b.atoms.resolve(value.dims))
        moves: dict[int, int] = {}
        for back, place in enumerate(reversed(places[-len(dims) :] if dims else ()), start=1):
            dim = dims[-back]
            if len(dim) == 1 and max(self.b.atoms.size(dim[0])) <= WIDEST:
                wanted = self.place(dim[0], place)
                if not self._is_place(dim[0]) and wanted not in self.b.leaves_of(self.b.exprs[value.value.id]):
                    self.b.atoms.unify(dim, (wanted,))
                elif wanted != dim[0]:
                    moves[dim[0]] = wanted
                dims[-back] = (wanted,)
        return Lowered(self._moved(value.value, moves), tuple(dims))

    def place(self, atom: int, place: str) -> int:
        """Give the dimension along which rows, columns or sums of an atom's size lie."""
        sizes = self.b.atoms.size(atom)
        if (sizes, place) not in self.places:
            self.places[sizes, place] = self.b.atoms.new(sizes)
        return self.b.atoms.leaves((self.places[sizes, place],))[0]

    def _is_place(self, atom: int) -> bool:
        return atom in self.b.atoms.leaves(self.places.values())

    def _moved(self, value: Value, moves: dict[int, int]) -> Value:
        """Turn a value along several dimensions at once; where two change places, one of them waits along the third of its size."""
        rest = dict(moves)
        while rest:
            held = self.b.leaves_of(self.b.exprs[value.id])
            free = next((source for source, wanted in rest.items() if source not in held or wanted not in held), None)
            if free is not None:
                wanted = rest.pop(free)
                value = self.b.turn(value, free, wanted) if free in held else value
                continue
            source = next(iter(rest))
            if rest[source] not in rest:
                raise LoweringError("a tensor of the loop meets itself along other dimensions")
            spare = next((spare for spare in self._alike(source) if spare not in held and spare not in rest.values()), None)
            if spare is None:
                raise LoweringError("a tensor of the loop has more than two dimensions of one matrix")
            value = self.b.turn(value, source, spare)
            rest[spare] = rest.pop(source)
        return value

    def _alike(self, atom: int) -> list[int]:
        return [self.place(atom, place) for place in (SUMMED, ROW, COLUMN)]

    def _through(self, node: Node, ref: Ref) -> Lowered:
        if node.op != "diagonal" or not self.flow.is_internal(node.args[0]):
            return super()._through(node, ref)
        source = self.value(node.args[0])
        rank = len(source.dims)
        offset = node.argument(1, "offset", default=0)
        one, two = node.argument(2, "dim1", default=0), node.argument(3, "dim2", default=1)
        if offset or {one % rank, two % rank} != {rank - 2, rank - 1}:
            raise LoweringError("a diagonal of other dimensions than the last two inside of a loop is not generated")
        found, b = self.laid(source), self.b
        rows, columns = found.dims[-2:]
        if b.count(rows) != b.count(columns) or not rows:
            raise LoweringError("a diagonal of what is not square inside of a loop is not generated")
        only = b.call("where", b.call("eq", b.index(rows), b.index(columns)), found.value, 0)
        return Lowered(b.cast(b.reduce(Fold.SUM, only, rows), found.value.dtype), (*found.dims[:-2], columns))

    def factor(self, ref: Ref, *, upper: bool = False) -> Lowered:
        """Find a triangular matrix, or the transpose of one that is lower, as what a solution is found with: its columns are summed."""
        found = self.value(ref)
        dims = (*found.dims[:-2], found.dims[-1], found.dims[-2]) if upper else found.dims
        return self._laid(Lowered(found.value, dims), (ROW, SUMMED))

    def solved(self, factor: Lowered, right: Lowered, *, upper: bool) -> Lowered:
        """Solve for a matrix, row by row."""
        (rows, summed), batch = factor.dims[-2:], self.b.atoms.broadcast(factor.dims[:-2], right.dims[:-2])
        if not rows or right.dims[-2] != rows:
            raise LoweringError("a triangular system of one row is not generated")
        atoms = (self.b.leaves_of(self.b.exprs[factor.value.id]) | self.b.leaves_of(self.b.exprs[right.value.id]) | {rows[0]}) - {summed[0]}
        op = "solve_upper" if upper else "solve_lower"
        value = self.b.matrix(op, (factor.value, right.value), (rows[0], summed[0]), atoms)
        return Lowered(value, (*batch, rows, right.dims[-1]))


def has_small_matrices(loop: Loop) -> bool:
    """Whether a step makes matrices that registers hold, of several rows and columns."""
    made = (each.shape for node in loop.body.nodes for each in node.outputs)
    return any(len(shape) > 1 and all(1 < max(sizes) <= WIDEST for sizes in shape[-2:]) for shape in made)


def _float32(low: Lowering, node: Node) -> MatrixSteps:
    if not isinstance(low, MatrixSteps) or any(each.dtype != "float32" for each in node.outputs[:1]):
        raise LoweringError(f"{node.target} is generated in float32, and inside of a loop")
    return low


def _cholesky(low: Lowering, node: Node) -> None:
    """Factor a matrix in registers; what is not positive definite gives what is no number."""
    steps = _float32(low, node)
    if node.argument(1, "upper", default=False):
        raise LoweringError("an upper factor inside of a loop is not generated")
    source = steps.laid(steps.value(node.args[0]))
    rows, columns = source.dims[-2:]
    if not rows:
        raise LoweringError("a factor of one element inside of a loop is not generated")
    sides = (rows[0], columns[0])
    atoms = low.b.leaves_of(low.b.exprs[source.value.id]) | set(sides)
    low.define(node, low.b.matrix("cholesky_factor", (source.value,), sides, atoms), source.dims)


def _cholesky_solve(low: Lowering, node: Node) -> None:
    """Solve with a factor, then with its transpose."""
    steps = _float32(low, node)
    if node.argument(2, "upper", default=False):
        raise LoweringError("an upper factor inside of a loop is not generated")
    half = steps.solved(steps.factor(node.args[1]), steps.laid(steps.value(node.args[0])), upper=False)
    whole = steps.solved(steps.factor(node.args[1], upper=True), half, upper=True)
    low.define(node, whole.value, whole.dims)


def _solve_triangular(low: Lowering, node: Node) -> None:
    steps = _float32(low, node)
    upper = bool(node.kwargs.get("upper"))
    if not node.kwargs.get("left", True) or node.kwargs.get("unitriangular"):
        raise LoweringError(f"{node.target} from the right, or of ones on the diagonal, inside of a loop is not generated")
    found = steps.solved(steps.factor(node.args[0]), steps.laid(steps.value(node.args[1])), upper=upper)
    low.define(node, found.value, found.dims)


MATRIX_RULES: dict[str, Rule] = {
    "linalg_cholesky": _cholesky, "cholesky_solve": _cholesky_solve, "linalg_solve_triangular": _solve_triangular,
}  # fmt: skip
"""Linear algebra of a loop's step."""


def _matrix_loop(low: Lowering, node: Node) -> None:
    lower_loop(low, node, MatrixSteps)


MATRIX_LOOP_RULES: dict[str, Rule] = {"recurrence": _matrix_loop}
"""Loops over steps of small matrices."""


def steps_matrices(graph: OperatorGraph, members: Sequence[str]) -> bool:
    """Whether a loop over steps of small matrices is among the members."""
    nodes = (graph.by_name[name] for name in members)
    return any(isinstance(node, Loop) and has_small_matrices(node) for node in nodes)
