"""Lower einsum of two tensors: a matrix product where it is one, and otherwise a sum of products of elements."""

from __future__ import annotations

from collections.abc import Sequence

from tools.codegen.ir.atoms import Dims
from tools.codegen.ir.builder import Value
from tools.codegen.ir.dtypes import COMPUTE, is_floating
from tools.codegen.ir.expr import Fold, LoweringError
from tools.codegen.ir.graph import Node, Ref
from tools.codegen.ir.kernel import Contraction, Lowered
from tools.codegen.lower.cancelling import cancels
from tools.codegen.lower.matmul import accumulator
from tools.codegen.lower.operands import Pair, operand_of, paired
from tools.codegen.lower.region.lowering import Lowering, Rule
from tools.codegen.lower.scores import summed


def read_equation(node: Node) -> tuple[tuple[str, str], str, tuple[Ref, Ref]]:
    """Read the letters of both operands and of the result, and the operands; raises LoweringError for other forms."""
    equation, operands = str(node.args[0]).replace(" ", ""), node.args[1]
    words, _, out = equation.partition("->")
    letters = words.split(",")
    if len(letters) != 2 or "->" not in equation or "." in equation or any(len(set(word)) != len(word) for word in (*letters, out)):
        raise LoweringError("einsum of other than two tensors, without an arrow, or with a letter twice in one of them is not generated")
    return (letters[0], letters[1]), out, (operands[0], operands[1])


def _einsum(low: Lowering, node: Node) -> None:
    """Multiply two tensors as an equation says, where each letter stands once in an operand."""
    words, out, operands = read_equation(node)
    if low.window is not None:
        raise LoweringError("a pooling does not share a kernel with einsum")
    ones, twos = set(words[0]), set(words[1])
    chained = node.name in low.flow.chained and (ones ^ twos) <= set(out)
    matrix = ones - twos and twos - ones and (ones & twos) - set(out) and (ones ^ twos) <= set(out)
    if low.is_step or (not matrix and not chained):
        _multiply_and_sum(low, node, words, operands, out)
        return
    if not twos - ones:
        # a single row: what has more letters has the columns
        words, operands = (words[1], words[0]), (operands[1], operands[0])
    pairs = paired(low, *operands)
    if not pairs:
        left = operand_of(low, low.lefts, operands[0], lambda: low.read_again(operands[0]))
        pairs = ((left, operand_of(low, low.rights, operands[1], lambda: low.read_again(operands[1]))),)
    low.define(node, *summed(low, [_product(low, node, words, pair, (out, chained)) for pair in pairs]))


def _product(low: Lowering, node: Node, words: tuple[str, str], pair: Pair, wanted: tuple[str, bool]) -> tuple[Value, Dims]:
    """Record one contraction, whose result has the letters that are `wanted`; one that is chained may have a single row."""
    (left, right), (out, chained) = pair, wanted
    dims = lettered(low, words, pair)
    ones, twos = set(words[0]), set(words[1])
    batch, rows, cols = (atoms_of(low, dims, letters) for letters in (ones & twos & set(out), ones - twos, twos - ones))
    inner = atoms_of(low, dims, (ones & twos) - set(out))
    if not cols or not inner or not (rows or chained):
        raise LoweringError("einsum over a dimension of one element is not generated")
    value = accumulator(low, node, frozenset((*batch, *rows, *cols)))
    dtype, cancelling = node.outputs[0].dtype, cancels(low.graph, *node.args[1])
    low.add_product(Contraction(left, right, batch, rows, cols, inner, value.id, dtype=dtype, cancels=cancelling))
    return value, tuple(dims[letter] for letter in out)


def atoms_of(low: Lowering, dims: dict[str, tuple[int, ...]], letters: set[str]) -> tuple[int, ...]:
    """List the atoms of some letters, in the order in which an equation names them."""
    return low.b.atoms.leaves(atom for letter in dims if letter in letters for atom in dims[letter])


def lettered(low: Lowering, words: Sequence[str], operands: Sequence[Lowered]) -> dict[str, tuple[int, ...]]:
    """Name the atoms of each letter of an equation."""
    dims = dict(zip(words[0], operands[0].dims, strict=True))
    for letter, dim in zip(words[1], operands[1].dims, strict=True):
        if dims.setdefault(letter, dim) != dim:
            if not dims[letter] or not dim:
                raise LoweringError("einsum that broadcasts a dimension of one is not generated")
            low.b.atoms.unify(dims[letter], dim)
    return dims


def _multiply_and_sum(low: Lowering, node: Node, words: Sequence[str], operands: Sequence[Ref], out: str) -> None:
    """Multiply element by element and sum what the equation leaves out: no matrix product, nothing that a tile could share."""
    dtype = COMPUTE[node.outputs[0].dtype]
    if not is_floating(dtype):
        raise LoweringError(f"products of {dtype} are not generated")
    left, right = (low.value(ref) for ref in operands)
    if low.is_step:
        inner = [letter for letter in words[0] if letter in words[1] and letter not in out]
        left, right = low.apart(left, right, *([word.index(letter) for letter in inner] for word in words))
    dims = lettered(low, words, (left, right))
    low.keep_distinct(tuple(dims.values()))
    value = low.b.compute(left.value, dtype) * low.b.compute(right.value, dtype)
    summed = low.b.atoms.leaves(atom for letter, dim in dims.items() if letter not in out for atom in dim)
    if summed:
        low.reduced.append(summed)
        value = low.b.reduce(Fold.SUM, value, summed)
    low.define(node, value, tuple(dims[letter] for letter in out))


EINSUM_RULES: dict[str, Rule] = {"einsum": _einsum}
"""By operator name."""
