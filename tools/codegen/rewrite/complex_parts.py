"""Complex arithmetic as arithmetic of real and imaginary parts, which kernels can hold.

Each complex value keeps its two parts at hand, and is itself a view of both stacked, which is left out where nothing reads it. What has
no rule here (a Fourier transform) reads that view, and what it makes is taken apart again where arithmetic follows.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from tools.codegen.ir.dtypes import SIGNED
from tools.codegen.ir.graph import Node, Ref, TensorMeta
from tools.codegen.ir.sizes import Sizes, as_number
from tools.codegen.rewrite.rewriter import Rewriter

COMPLEX, REAL = "complex64", "float32"
VIEWS = frozenset({"unsqueeze", "squeeze", "reshape", "view", "flatten", "permute", "transpose", "expand", "select", "slice", "diagonal"})
"""Views that treat both parts alike."""
MOVES = frozenset({"roll", "flip"})
"""What moves both parts alike."""
WITH_NUMBERS = frozenset({"mul", "add", "sub", "rsub", "div"})
"""What takes whole numbers as the real ones that they are."""
BY_SIGN = frozenset({"angle", "atan2"})
"""What tells one zero from the other."""
LEAST_ROWS = 32
"""Rows from which a product is made real: for fewer, writing the matrix anew takes longer than the product."""
OF_NUMBERS: dict[str, Callable[[float, float], float]] = {"add": operator.add, "sub": operator.sub, "mul": operator.mul}
Pair = tuple[Ref, Ref]


def real_parts(rewriter: Rewriter, node: Node) -> Sequence[Node] | None:
    """Write a node that makes or reads complex values by their parts; None where it stays as it is."""
    refs = [ref for ref in node.refs if ref.index == 0 and ref.name in rewriter.metas]
    if len(node.outputs) != 1 or len(refs) < len(node.refs):
        return None
    reads = any(rewriter.metas[ref.name].dtype == COMPLEX for ref in refs)
    makes = node.outputs[0].dtype == COMPLEX
    if not makes and not reads:
        return None
    parts = _Parts(rewriter, node)
    rule = (_OF_COMPLEX if reads else _TO_COMPLEX).get(node.op) or (_view if reads and makes and node.op in VIEWS | MOVES else None)
    fits = {COMPLEX, REAL} | (SIGNED if node.op in WITH_NUMBERS else set())
    if rule is None or any(rewriter.metas[ref.name].dtype not in fits for ref in refs):
        return None
    return rule(parts) or None


def parts_of_steps(rewriter: Rewriter, steps: Sequence[Node]) -> list[Node]:
    """Write nodes that take one node's place by their parts, those of them that make or read complex values."""
    found: list[Node] = []
    for step in steps:
        made = real_parts(rewriter, step) or (step,)
        rewriter.metas.update({each.name: each.outputs[0] for each in made})
        found += made
    return found


class _Parts:
    """The nodes that take one node's place."""

    def __init__(self, rewriter: Rewriter, node: Node) -> None:
        self.rewriter, self.node, self.made = rewriter, node, list[Node]()
        self.out = replace(node.outputs[0], dtype=REAL)
        self.two = (2,) * rewriter.graph.traces

    def of(self, ref: Ref) -> Pair:
        """Give the parts of a complex value."""
        known: Pair | None = self.rewriter.parts.get(ref)
        if known is None:
            meta = self.rewriter.metas[ref.name]
            shape = TensorMeta((*meta.shape, self.two), REAL, meta.contiguous, meta.unit_last)
            real = self.append(f"{ref.name}_as_real", "view_as_real.default", (ref,), shape)
            known = self.split(real, replace(meta, dtype=REAL), ref.name)
            self.rewriter.parts[ref] = known
        return known

    def split(self, ref: Ref, meta: TensorMeta, name: str) -> Pair:
        """Select both parts of what has them along its last dimension."""
        strided = replace(meta, contiguous=False, unit_last=False)
        real, imaginary = (
            self.append(f"{name}_{word}", "select.int", (ref, -1, place), strided) for place, word in enumerate(("real", "imaginary"))
        )
        return real, imaginary

    def is_complex(self, arg: Any) -> bool:
        """Whether an argument is a complex value."""
        return isinstance(arg, Ref) and self.rewriter.metas[arg.name].dtype == COMPLEX

    def sides(self, arg: Any) -> tuple[Any, Any]:
        """Give the parts of an argument, tensors or numbers; a real one has no second part."""
        if isinstance(arg, complex):
            return arg.real, arg.imag
        return self.of(arg) if self.is_complex(arg) else (arg, None)

    def of_two(self, word: str, op: str, one: Any, two: Any) -> Any:
        """Add, subtract or multiply two real values, of which either may be a number or both."""
        if isinstance(two, Ref) and not isinstance(one, Ref):
            return self.call(word, "rsub.Scalar", two, one) if op == "sub" else self.call(word, f"{op}.Tensor", two, one)
        return self.call(word, f"{op}.Tensor", one, two) if isinstance(one, Ref) else OF_NUMBERS[op](one, two)

    def call(self, word: str, target: str, *args: Any) -> Ref:
        """Add an operator on parts, of the result's shape."""
        return self.append(f"{self.node.name}_{word}", target, args, self.out)

    def append(self, name: str, target: str, args: tuple[Any, ...], meta: TensorMeta) -> Ref:
        """Add a node."""
        self.made.append(Node(name, f"aten.{target}", args, {}, (meta,)))
        return Ref(name)

    def complex_of(self, real: Ref, imaginary: Ref) -> list[Node]:
        """Finish with a complex value of two parts."""
        self.rewriter.parts[Ref(self.node.name)] = (real, imaginary)
        out = self.node.outputs[0]
        pair = self.append(f"{self.node.name}_pair", "stack.default", ([real, imaginary], -1), TensorMeta((*out.shape, self.two), REAL))
        return [
            *self.made,
            Node(self.node.name, "aten.view_as_complex.default", (pair,), {}, (replace(out, contiguous=True, unit_last=True),)),
        ]

    def view_of(self, pairs: Ref) -> list[Node]:
        """Finish with the complex view of a real tensor, whose parts are read where they lie."""
        made = Ref(self.node.name)
        self.rewriter.pairs[made], self.rewriter.parts[made] = pairs, self.split(pairs, self.out, self.node.name)
        return [*self.made, Node(self.node.name, "aten.view_as_complex.default", (pairs,), {}, self.node.outputs)]

    def pairs_of(self, ref: Ref) -> Ref:
        """Give a real tensor with both parts of a complex value along its last dimension."""
        if ref in self.rewriter.pairs:
            return self.rewriter.pairs[ref]
        return self.stacked(f"{self.node.name}_of_{ref.name}", self.of(ref), self.rewriter.metas[ref.name].shape, -1)

    def stacked(self, name: str, pair: Pair, shape: tuple[Sizes, ...], dim: int) -> Ref:
        """Lay two tensors of one shape along a new dimension."""
        place = dim % (len(shape) + 1)
        return self.append(name, "stack.default", (list(pair), dim), TensorMeta((*shape[:place], self.two, *shape[place:]), REAL))

    def viewed(self, name: str, target: str, *args: Any, shape: tuple[Sizes, ...]) -> Ref:
        """Add a view of real values."""
        return self.append(f"{self.node.name}_{name}", target, args, TensorMeta(shape, REAL))

    def expanded(self, ref: Ref) -> Ref:
        """Broadcast real values to the result's shape."""
        known = self.rewriter.metas.get(ref.name) or next(each.outputs[0] for each in self.made if each.name == ref.name)
        if known.shape == self.out.shape:
            return ref
        strided = replace(self.out, contiguous=False, unit_last=False)
        return self.append(
            f"{self.node.name}_wide_{ref.name}", "expand.default", (ref, [as_number(size) for size in self.out.shape]), strided
        )

    def real_of(self, target: str, *args: Any) -> list[Node]:
        """Finish with a real value."""
        return [*self.made, Node(self.node.name, f"aten.{target}", args, {}, self.node.outputs)]


def _from_pairs(parts: _Parts) -> list[Node]:
    return parts.view_of(parts.node.args[0])


def _polar(parts: _Parts) -> list[Node]:
    size, angle = parts.node.args
    # both inputs are broadcast to the result, an angle after its cosine
    own = parts.rewriter.metas[angle.name]
    cosine, sine = (parts.append(f"{parts.node.name}_{word}", f"{word}.default", (angle,), own) for word in ("cos", "sin"))
    return parts.complex_of(parts.call("real", "mul.Tensor", size, cosine), parts.call("imaginary", "mul.Tensor", size, sine))


def _of_real(parts: _Parts) -> list[Node]:
    real = parts.node.args[0]
    return parts.complex_of(real, parts.call("imaginary", "full_like.default", real, 0.0))


def _both(parts: _Parts) -> list[Node]:
    return parts.complex_of(*map(parts.expanded, parts.node.args[:2]))


def _multiply(parts: _Parts) -> list[Node]:
    one, two = parts.node.args if parts.node.op == "mul" else parts.node.args[:1] * 2
    return _times(parts, one, two) if parts.node.op != "pow" or parts.node.args[1] == 2 else []


def _times(parts: _Parts, one: Any, two: Any) -> list[Node]:
    """Multiply as PyTorch does, which takes a real number as a complex one: its part of zero decides which zero a product is."""
    (a, b), (c, d) = sorted((parts.sides(one), parts.sides(two)), key=lambda pair: pair[1] is None)
    if d is not None or any(each.op in BY_SIGN for each in parts.rewriter.graph.nodes):
        d = 0.0 if d is None else d
        ac, bd, ad, bc = (parts.of_two(w, "mul", x, y) for w, x, y in (("ac", a, c), ("bd", b, d), ("ad", a, d), ("bc", b, c)))
        return parts.complex_of(parts.of_two("real", "sub", ac, bd), parts.of_two("imaginary", "add", ad, bc))
    return parts.complex_of(parts.of_two("real", "mul", a, c), parts.of_two("imaginary", "mul", b, c))


def _add(parts: _Parts) -> list[Node]:
    """Add or subtract both parts."""
    one, two, *rest = parts.node.args
    if rest or parts.node.kwargs:
        return []
    (a, b), (c, d) = map(parts.sides, (two, one) if parts.node.op == "rsub" else (one, two))
    word = "add" if parts.node.op == "add" else "sub"
    real = parts.of_two("real", word, a, c)
    if d is None and isinstance(b, Ref):
        return parts.complex_of(real, parts.expanded(b))
    d = parts.expanded(d) if b is None and isinstance(d, Ref) else d
    imaginary = parts.of_two("imaginary", word, 0.0 if b is None else b, 0.0 if d is None else d)
    if isinstance(imaginary, float):
        imaginary = parts.call("imaginary", "full_like.default", real, imaginary)
    return parts.complex_of(real, imaginary)


def _each(parts: _Parts) -> list[Node]:
    """Negate both parts, or divide them by a real number."""
    one, *rest = parts.node.args
    if not parts.is_complex(one) or parts.node.kwargs or any(isinstance(each, complex) for each in rest):
        return []
    target = parts.node.target.removeprefix("aten.")
    real, imaginary = (parts.call(word, target, part, *rest) for word, part in zip(("real", "imaginary"), parts.of(one), strict=True))
    return parts.complex_of(real, imaginary)


def _divide(parts: _Parts) -> list[Node]:
    """Divide by a complex number as PyTorch does: first by its larger part, so that no square overflows."""
    one, two = parts.node.args if parts.node.op == "div" else (1.0, *parts.node.args)
    if isinstance(two, complex) and two and not parts.node.kwargs:
        return _times(parts, one, 1 / two)
    if not parts.is_complex(two) or parts.node.kwargs:
        return _each(parts)
    (c, d), own = parts.of(two), replace(parts.rewriter.metas[two.name], dtype=REAL)

    def add(word: str, target: str, *args: Any, meta: TensorMeta = own) -> Ref:
        return parts.append(f"{parts.node.name}_{word}", target, args, meta)

    sizes = [add(f"size_of_{word}", "abs.default", part) for word, part in (("real", c), ("imaginary", d))]
    is_wide = add("is_wide", "ge.Tensor", *sizes, meta=replace(own, dtype="bool"))
    larger, smaller = add("larger", "where.self", is_wide, c, d), add("smaller", "where.self", is_wide, d, c)
    # zero over zero would be none, where PyTorch divides by the other part alone
    is_flat = add("is_flat", "eq.Scalar", smaller, 0.0, meta=replace(own, dtype="bool"))
    ratio = add("ratio", "where.self", is_flat, smaller, add("quotient", "div.Tensor", smaller, larger))
    under = add("under", "add.Tensor", larger, add("rest", "mul.Tensor", smaller, ratio))
    scaled = add("scaled", "where.self", is_flat, smaller, add("share", "div.Tensor", ratio, under))
    scale = add("scale", "reciprocal.default", under)
    # one over the divisor, by whose parts a number is multiplied
    real, turned = add("by", "where.self", is_wide, scale, scaled), add("turned_by", "where.self", is_wide, scaled, scale)
    imaginary = add("by_imaginary", "neg.default", turned)
    if parts.node.op == "reciprocal":
        return parts.complex_of(real, imaginary)
    if not parts.is_complex(one):
        return parts.complex_of(parts.call("real", "mul.Tensor", real, one), parts.call("imaginary", "mul.Tensor", imaginary, one))
    a, b = parts.of(one)
    terms = (("ac", a, real), ("bd", b, turned), ("ad", a, turned), ("bc", b, real))
    ac, bd, ad, bc = (parts.call(word, "mul.Tensor", one, other) for word, one, other in terms)
    return parts.complex_of(parts.call("real", "add.Tensor", ac, bd), parts.call("imaginary", "sub.Tensor", bc, ad))


def _exponential(parts: _Parts) -> list[Node]:
    real, imaginary = parts.of(parts.node.args[0])
    size, cosine, sine = (parts.call(w, f"{w}.default", x) for w, x in (("exp", real), ("cos", imaginary), ("sin", imaginary)))
    # of a real number it is real, however large: infinity times zero is none
    flat = parts.append(f"{parts.node.name}_flat", "eq.Scalar", (imaginary, 0.0), replace(parts.out, dtype="bool"))
    turned = parts.call("turned", "mul.Tensor", size, sine)
    return parts.complex_of(parts.call("real", "mul.Tensor", size, cosine), parts.call("imaginary", "where.self", flat, imaginary, turned))


def _sum(parts: _Parts) -> list[Node]:
    return [] if parts.node.kwargs else _view(parts)


def _conjugate(parts: _Parts) -> list[Node]:
    real, imaginary = parts.of(parts.node.args[0])
    return parts.complex_of(real, parts.call("negated", "neg.default", imaginary))


def _view(parts: _Parts) -> list[Node]:
    target = parts.node.target.removeprefix("aten.")
    real, imaginary = parts.of(parts.node.args[0])
    if parts.node.op in VIEWS:
        parts.out = replace(parts.out, contiguous=False, unit_last=False)
    return parts.complex_of(*(parts.call(word, target, part, *parts.node.args[1:]) for word, part in (("r", real), ("i", imaginary))))


def _product(parts: _Parts) -> list[Node]:
    """Multiply by a matrix as real numbers do: pairs of parts lie side by side, and the matrix has each element as one of two by two.

    What the library has for complex numbers takes no tensor cores, and its operands and results are read and written once more.
    """
    left, right = parts.node.args[:2]
    if len(parts.node.args) > 2 or not (parts.is_complex(left) and parts.is_complex(right)):
        return []
    metas = parts.rewriter.metas
    (*rows, inner), sides = metas[left.name].shape, metas[right.name].shape
    if len(sides) != 2 or math.prod(sizes[0] for sizes in rows) < LEAST_ROWS:
        return []
    real, imaginary = parts.of(right)
    negative = parts.append(f"{parts.node.name}_negative", "neg.default", (imaginary,), TensorMeta(sides, REAL))
    upper = parts.stacked(f"{parts.node.name}_upper", (real, imaginary), sides, -1)
    lower = parts.stacked(f"{parts.node.name}_lower", (negative, real), sides, -1)
    four = parts.stacked(f"{parts.node.name}_four", (upper, lower), (*sides, parts.two), 1)
    wide = (inner, parts.two, _double(sides[1]))
    matrix = parts.viewed("wide", "flatten.using_ints", four, 2, 3, shape=wide)
    matrix = parts.viewed("matrix", "flatten.using_ints", matrix, 0, 1, shape=(_double(inner), wide[2]))
    flat = parts.viewed("flat", "flatten.using_ints", parts.pairs_of(left), -2, -1, shape=(*rows, _double(inner)))
    made = parts.viewed("made", "matmul.default", flat, matrix, shape=(*rows, wide[2]))
    return parts.view_of(parts.viewed("pairs", "unflatten.int", made, -1, [-1, 2], shape=(*parts.out.shape, parts.two)))


def _double(sizes: Sizes) -> Sizes:
    return tuple(2 * size for size in sizes)


def _as_pairs(parts: _Parts) -> list[Node]:
    pairs = parts.rewriter.pairs.get(parts.node.args[0])
    if pairs is not None:
        return parts.real_of("view_as.default", pairs, pairs)
    return parts.real_of("stack.default", list(parts.of(parts.node.args[0])), -1)


def _one(place: int) -> Callable[[_Parts], list[Node]]:
    def rule(parts: _Parts) -> list[Node]:
        part = parts.of(parts.node.args[0])[place]
        return parts.real_of("view_as.default", part, part)

    return rule


def _absolute(parts: _Parts) -> list[Node]:
    real, imaginary = parts.of(parts.node.args[0])
    squares = [parts.call(word, "mul.Tensor", part, part) for word, part in (("square", real), ("other_square", imaginary))]
    return parts.real_of("sqrt.default", parts.call("squares", "add.Tensor", *squares))


def _angle(parts: _Parts) -> list[Node]:
    return parts.real_of("atan2.default", *reversed(parts.of(parts.node.args[0])))


Rule = Callable[[_Parts], list[Node]]
_TO_COMPLEX: dict[str, Rule] = {
    "view_as_complex": _from_pairs, "polar": _polar, "complex": _both, "to": _of_real, "_to_copy": _of_real,
    **dict.fromkeys(("add", "sub", "rsub"), _add), "mul": _multiply, "div": _divide,
}  # fmt: skip
"""What makes complex values of real ones."""
_OF_COMPLEX: dict[str, Rule] = {
    **dict.fromkeys(("mul", "square", "pow"), _multiply), **dict.fromkeys(("add", "sub", "rsub"), _add), "neg": _each,
    "div": _divide, "reciprocal": _divide,
    "conj": _conjugate, "_conj": _conjugate,
    "view_as_real": _as_pairs, "real": _one(0), "imag": _one(1), "abs": _absolute, "angle": _angle,
    "matmul": _product, "mm": _product, "exp": _exponential, "sum": _sum, "mean": _sum,
}  # fmt: skip
"""What reads complex values."""
