"""Einsum of several tensors as products of two at a time, from the left, as PyTorch itself takes them.

Two tensors that share a summed letter are a matrix product, which stays an einsum; two that sum nothing, or a few elements, are multiplied
element by element, after views that put their dimensions in one order. One tensor is its diagonal, and a sum.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from tools.codegen.ir.graph import Node, Ref, TensorMeta
from tools.codegen.ir.sizes import Sizes
from tools.codegen.rewrite.complex_parts import COMPLEX, parts_of_steps
from tools.codegen.rewrite.elementwise import MOST_SUMMED
from tools.codegen.rewrite.rewriter import Rewriter

BATCH = "abcdefgh"
"""Letters of the dimensions before the features of a bilinear layer."""


@dataclass(frozen=True)
class _Operand:
    ref: Ref
    letters: str


def decompose_einsum(rewriter: Rewriter, node: Node) -> Sequence[Node] | None:
    """Write an einsum of tensors that name each letter once as steps of two tensors each; None where it stays as it is."""
    equation, _, out = str(node.args[0]).replace(" ", "").partition("->")
    words, refs = equation.split(","), node.args[1]
    if len(words) == 1 and len(refs) == 1 and isinstance(refs[0], Ref):
        return _of_one(rewriter, node, _Operand(refs[0], words[0]), out)
    plain = out and "." not in equation + out and all(len(set(word)) == len(word) for word in (*words, out))
    if not plain or len(words) != len(refs) or len(words) < 2 or not all(isinstance(ref, Ref) for ref in refs):
        return None
    sizes = _sizes(rewriter, words, refs)
    if sizes is None or {rewriter.metas[ref.name].dtype for ref in refs} != {node.outputs[0].dtype}:
        return None
    steps = _Steps(node.outputs[0].dtype, sizes)
    left = _Operand(refs[0], words[0])
    for place, (ref, word) in enumerate(zip(refs[1:], words[1:], strict=True), 1):
        later = set(out).union(*words[place + 1 :])
        last = place == len(refs) - 1
        made = steps.multiply(left, _Operand(ref, word), later, out if last else "", node.name if last else f"{node.name}_step{place}")
        if made is None:
            return None
        left = made
    only_itself = len(steps.nodes) == 1 and steps.nodes[0].target == node.target
    return None if only_itself else parts_of_steps(rewriter, steps.nodes) if steps.dtype == COMPLEX else steps.nodes


def bilinear(rewriter: Rewriter, node: Node) -> Sequence[Node] | None:
    """Write a bilinear layer as an einsum of its inputs and its weight, and its bias as an addition."""
    one, two, weight, bias = node.args[0], node.args[1], node.args[2], node.argument(3, "bias")
    batch = BATCH[: len(node.outputs[0].shape) - 1]
    target, args = "aten.einsum.default", (f"{batch}x,zxy,{batch}y->{batch}z", [one, weight, two])
    name = node.name if bias is None else f"{node.name}_product"
    product = decompose_einsum(rewriter, Node(name, target, args, {}, node.outputs))
    if product is None or bias is None:
        return product
    return *product, Node(node.name, "aten.add.Tensor", (Ref(name), bias), {}, node.outputs)


def _of_one(rewriter: Rewriter, node: Node, operand: _Operand, out: str) -> Sequence[Node] | None:
    """Write an einsum of one tensor as the diagonal that it looks at, and the sum of what is left out."""
    word, meta = operand.letters, rewriter.metas.get(operand.ref.name)
    twice = [letter for letter in dict.fromkeys(word) if word.count(letter) == 2]
    odd = len(set(out)) != len(out) or not set(out) <= set(word) or len(word) - len(set(word)) != len(twice) or len(twice) > 1
    if meta is None or operand.ref.index or "." in word or len(meta.shape) != len(word) or odd or not out.isalpha():
        return None
    steps = _Steps(node.outputs[0].dtype, dict(zip(word, meta.shape, strict=True)))
    if twice:
        one, two = (place for place, letter in enumerate(word) if letter == twice[0])
        letters = word.replace(twice[0], "") + twice[0]
        steps.append(f"{node.name}_diagonal", "aten.diagonal.default", (operand.ref, 0, one, two), letters, view=True)
        operand = _Operand(Ref(f"{node.name}_diagonal"), letters)
    gone = "".join(letter for letter in operand.letters if letter not in out)
    if not gone:
        return None
    view = steps.in_order(operand, out + gone, f"{node.name}_kept")
    steps.append(node.name, "aten.sum.dim_IntList", (view, [place - len(gone) for place in range(len(gone))]), out)
    return steps.nodes


def _sizes(rewriter: Rewriter, words: Sequence[str], refs: Sequence[Ref]) -> dict[str, Sizes] | None:
    """Read each letter's size; None where two tensors differ in one, which would broadcast, or where a shape is not known."""
    sizes: dict[str, Sizes] = {}
    for word, ref in zip(words, refs, strict=True):
        meta = rewriter.metas.get(ref.name) if ref.index == 0 else None
        if meta is None or len(meta.shape) != len(word):
            return None
        for letter, size in zip(word, meta.shape, strict=True):
            if sizes.setdefault(letter, size) != size:
                return None
    return sizes


class _Steps:
    """The nodes of one einsum."""

    def __init__(self, dtype: str, sizes: dict[str, Sizes]) -> None:
        self.dtype, self._sizes = dtype, sizes
        self.nodes: list[Node] = []

    def multiply(self, left: _Operand, right: _Operand, later: set[str], out: str, name: str) -> _Operand | None:
        """Multiply two tensors and sum what nothing reads `later`, into dimensions in the order of `out`, or in a product's own."""
        ones, twos = set(left.letters), set(right.letters)
        if (ones ^ twos) - later:
            # a letter of one tensor alone is summed: no product of two
            return None
        every = dict.fromkeys(left.letters + right.letters)
        if (ones & twos) <= later:
            letters = out or "".join(every)
            views = [self.in_order(operand, letters, f"{name}_{side}") for operand, side in ((left, "left"), (right, "right"))]
            self.append(name, "aten.mul.Tensor", tuple(views), letters)
            return _Operand(Ref(name), letters)
        summed = [letter for letter in every if letter in ones & twos and letter not in later]
        # the library's product of complex numbers gains nothing where each element of one of them is read once
        if self._is_few(summed) or (self.dtype == COMPLEX and (ones <= twos or twos <= ones)):
            return self._written_out(left, right, out or "".join(letter for letter in every if letter in later), "".join(summed), name)
        both = [letter for letter in every if letter in ones & twos and letter in later]
        alone = [letter for letter in every if letter in ones ^ twos]
        letters = out or "".join([*both, *alone])
        self.append(name, "aten.einsum.default", (f"{left.letters},{right.letters}->{letters}", [left.ref, right.ref]), letters)
        return _Operand(Ref(name), letters)

    def _is_few(self, summed: Sequence[str]) -> bool:
        """Whether sums over these letters have so few terms that they are written out."""
        sizes = [self._sizes[letter] for letter in summed]
        fixed = all(len(set(size)) == 1 for size in sizes)
        return self.dtype in ("float32", COMPLEX) and fixed and 1 < math.prod(size[0] for size in sizes) <= MOST_SUMMED

    def _written_out(self, left: _Operand, right: _Operand, out: str, summed: str, name: str) -> _Operand:
        """Multiply element by element, and add up along the last dimensions."""
        views = [self.in_order(operand, out + summed, f"{name}_{side}") for operand, side in ((left, "left"), (right, "right"))]
        self.append(f"{name}_terms", "aten.mul.Tensor", tuple(views), out + summed)
        dims = [place - len(summed) for place in range(len(summed))]
        self.append(name, "aten.sum.dim_IntList", (Ref(f"{name}_terms"), dims), out)
        return _Operand(Ref(name), out)

    def in_order(self, operand: _Operand, letters: str, name: str) -> Ref:
        """View a tensor with its dimensions in an order, those that it lacks of one element."""
        ref, has = operand.ref, [letter for letter in letters if letter in operand.letters]
        if has != list(operand.letters):
            dims = [operand.letters.index(letter) for letter in has]
            self.append(f"{name}_turned", "aten.permute.default", (ref, dims), "".join(has), view=True)
            ref = Ref(f"{name}_turned")
        for place, letter in enumerate(letters):
            if letter not in has:
                shown = "".join(each for each in letters if each in has or letters.index(each) <= place)
                lacking = {each for each in shown if each not in has}
                self.append(f"{name}_{letter}", "aten.unsqueeze.default", (ref, place), shown, view=True, lacking=lacking)
                ref = Ref(f"{name}_{letter}")
        return ref

    def append(
        self, name: str, target: str, args: tuple[object, ...], letters: str, *, view: bool = False, lacking: Collection[str] = ()
    ) -> None:
        """Add a node whose result has these dimensions."""
        one: Sizes = (1,) * len(next(iter(self._sizes.values())))
        shape = tuple(one if letter in lacking else self._sizes[letter] for letter in letters)
        self.nodes.append(Node(name, target, args, {}, (TensorMeta(shape, self.dtype, contiguous=not view, unit_last=not view),)))
