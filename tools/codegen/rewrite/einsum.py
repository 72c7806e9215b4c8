"""Einsum of several tensors as products of two at a time, from the left, as PyTorch itself takes them.

Two tensors that share a summed letter are a matrix product, which stays an einsum; two that sum nothing, or a few elements, or many for a
few results, are multiplied element by element, after views that put their dimensions in one order. One tensor is a view, and a sum. Before
that each tensor is its diagonal along a letter that it names twice, and lacks what it broadcasts.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from tools.codegen.ir.equation import spelled_out
from tools.codegen.ir.graph import Node, Ref, TensorMeta
from tools.codegen.ir.sizes import Sizes, is_one
from tools.codegen.rewrite.complex_parts import COMPLEX, parts_of_steps
from tools.codegen.rewrite.elementwise import MOST_SUMMED, gives_few
from tools.codegen.rewrite.rewriter import Rewriter

BATCH = "abcdefgh"
"""Letters of the dimensions before the features of a bilinear layer."""


@dataclass(frozen=True)
class _Operand:
    ref: Ref
    letters: str


def decompose_einsum(rewriter: Rewriter, node: Node) -> Sequence[Node] | None:
    """Write an einsum as steps of two tensors each, whose equations name each letter once; None where it stays as it is."""
    refs = node.args[1]
    metas = [_meta(rewriter, ref) for ref in refs] if all(isinstance(ref, Ref) for ref in refs) else [None]
    known = [meta for meta in metas if meta is not None]
    spelled = spelled_out(str(node.args[0]), [len(meta.shape) for meta in known]) if len(known) == len(metas) else None
    if spelled is None or {meta.dtype for meta in known} != {node.outputs[0].dtype}:
        return None
    words, out = spelled
    sizes = _sizes(words, known)
    if sizes is None:
        return None
    steps = _Steps(node.outputs[0].dtype, sizes)
    operands = [
        steps.plain(_Operand(ref, word), meta, f"{node.name}_operand{place}")
        for place, (ref, word, meta) in enumerate(zip(refs, words, known, strict=True))
    ]
    made = steps.of_one(operands[0], out, node.name) if len(operands) == 1 else steps.of_several(operands, out, node)
    if made is None:
        return None
    only_itself = len(steps.nodes) == 1 and steps.nodes[0].args == (str(node.args[0]).replace(" ", ""), refs)
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


def _meta(rewriter: Rewriter, ref: Ref) -> TensorMeta | None:
    """Give shape and dtype of a value, also of one of several that an operator makes."""
    if ref.index == 0 and ref.name in rewriter.metas:
        return rewriter.metas[ref.name]
    maker = next((each for each in rewriter.nodes if each.name == ref.name), None)
    return maker.outputs[ref.index] if maker is not None and ref.index < len(maker.outputs) else None


def _sizes(words: Sequence[str], metas: Sequence[TensorMeta]) -> dict[str, Sizes] | None:
    """Read each letter's size, that of one element only where no tensor has more; None where two tensors differ otherwise."""
    sizes: dict[str, Sizes] = {}
    for word, meta in zip(words, metas, strict=True):
        for letter, size in zip(word, meta.shape, strict=True):
            if not is_one(size) and sizes.setdefault(letter, size) != size:
                if not is_one(sizes[letter]):
                    return None
                sizes[letter] = size
            sizes.setdefault(letter, size)
    return sizes


def _own_order(left: _Operand, right: _Operand, later: set[str]) -> str:
    """Put what two tensors make in order: of a product first its batch, of what is multiplied element by element as the letters come."""
    both = set(left.letters) & set(right.letters)
    kept = [letter for letter in dict.fromkeys(left.letters + right.letters) if letter in later]
    return "".join(kept if both <= later else sorted(kept, key=lambda letter: letter not in both))


def _batch_first(letters: str, following: Sequence[_Operand], out: str) -> str:
    """Put first what the next matrix product has one of for each of: elements of one matrix lie side by side."""
    seen = set(letters)
    for place, operand in enumerate(following):
        twos, later = set(operand.letters), set(out).union(*(each.letters for each in following[place + 1 :]))
        if seen & twos - later:
            batch = seen & twos & later if seen - twos and twos - seen else set()
            return "".join(sorted(letters, key=lambda letter: letter not in batch))
        seen |= twos
    return letters


class _Steps:
    """The nodes of one einsum."""

    def __init__(self, dtype: str, sizes: dict[str, Sizes]) -> None:
        self.dtype, self._sizes = dtype, sizes
        self.nodes: list[Node] = []

    def plain(self, operand: _Operand, meta: TensorMeta, name: str) -> _Operand:
        """View a tensor with each letter once, as its diagonals, and without dimensions of one element that others have more of."""
        ref, letters, shape = operand.ref, operand.letters, dict(zip(operand.letters, meta.shape, strict=True))
        for place, letter in enumerate(dict.fromkeys(letters)):
            while letters.count(letter) > 1:
                one = letters.index(letter)
                two = letters.index(letter, one + 1)
                letters = letters[:one] + letters[one + 1 : two] + letters[two + 1 :] + letter
                made = f"{name}_diagonal{place}_{len(letters)}"
                self.append(made, "aten.diagonal.default", (ref, 0, one, two), letters, view=True, lacking=self._lacking(shape))
                ref = Ref(made)
        for letter in self._lacking(shape):
            place, letters = letters.index(letter), letters.replace(letter, "")
            made = f"{name}_without_{letter}"
            self.append(made, "aten.squeeze.dim", (ref, place), letters, view=True, lacking=self._lacking(shape))
            ref = Ref(made)
        return _Operand(ref, letters)

    def _lacking(self, shape: Mapping[str, Sizes]) -> list[str]:
        return [letter for letter, size in shape.items() if size != self._sizes[letter]]

    def of_one(self, operand: _Operand, out: str, name: str) -> _Operand:
        """Put one tensor's dimensions in order, and sum what the result lacks."""
        gone = "".join(letter for letter in operand.letters if letter not in out)
        if not gone:
            dims = [operand.letters.index(letter) for letter in out]
            self.append(name, "aten.permute.default", (operand.ref, dims), out, view=True)
            return _Operand(Ref(name), out)
        view = self.in_order(operand, out + gone, f"{name}_kept")
        self.append(name, "aten.sum.dim_IntList", (view, [place - len(gone) for place in range(len(gone))]), out)
        return _Operand(Ref(name), out)

    def of_several(self, operands: Sequence[_Operand], out: str, node: Node) -> _Operand | None:
        """Multiply tensors from the left, two at a time; None where that is left to the library."""
        left = operands[0]
        for place, right in enumerate(operands[1:], 1):
            later = set(out).union(*(operand.letters for operand in operands[place + 1 :]))
            last = place == len(operands) - 1
            order = out if last else _batch_first(_own_order(left, right, later), operands[place + 1 :], out)
            made = self.multiply(left, right, later, order, node.name if last else f"{node.name}_step{place}")
            if made is None and len(operands) == 2:
                # a sum of elements, which has a rule
                equation = f"{left.letters},{right.letters}->{out}"
                self.append(node.name, node.target, (equation, [left.ref, right.ref]), out)
                made = _Operand(Ref(node.name), out)
            if made is None:
                return None
            left = made
        return left

    def multiply(self, left: _Operand, right: _Operand, later: set[str], out: str, name: str) -> _Operand | None:
        """Multiply two tensors and sum what nothing reads `later`, into dimensions in the order of `out`."""
        ones, twos = set(left.letters), set(right.letters)
        if (ones ^ twos) - later:
            # a letter of one tensor alone is summed: no product of two
            return None
        every = dict.fromkeys(left.letters + right.letters)
        if (ones & twos) <= later:
            views = [self.in_order(operand, out, f"{name}_{side}") for operand, side in ((left, "left"), (right, "right"))]
            self.append(name, "aten.mul.Tensor", tuple(views), out)
            return _Operand(Ref(name), out)
        summed = [letter for letter in every if letter in ones & twos and letter not in later]
        # the library's product of complex numbers gains nothing where each element of one of them is read once
        if self._is_few(summed) or self._gives_few(ones ^ twos, summed) or (self.dtype == COMPLEX and (ones <= twos or twos <= ones)):
            return self._written_out(left, right, out, "".join(summed), name)
        self.append(name, "aten.einsum.default", (f"{left.letters},{right.letters}->{out}", [left.ref, right.ref]), out)
        return _Operand(Ref(name), out)

    def _is_few(self, summed: Sequence[str]) -> bool:
        """Whether sums over these letters have so few terms that they are written out."""
        sizes = [self._sizes[letter] for letter in summed]
        fixed = all(len(set(size)) == 1 for size in sizes)
        return self.dtype in ("float32", COMPLEX) and fixed and 1 < math.prod(size[0] for size in sizes) <= MOST_SUMMED

    def _gives_few(self, alone: Collection[str], summed: Sequence[str]) -> bool:
        """Whether each of a batch is a few long sums."""
        outputs, terms = (math.prod(self._sizes[letter][0] for letter in letters) for letters in (alone, summed))
        return self.dtype == "float32" and gives_few(outputs, terms)

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
