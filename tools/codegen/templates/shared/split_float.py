"""Split-float products: float32 operands are each written as several shorter parts before the product (fp16 split, bf16 split).

`fp16x3` scales every row of the left and every column of the right by a power of two, so that its largest element lies in
[2^14, 2^15), and writes each element as the sum of two halves (the second times 2^11). Of the four products of halves the smallest is
left out: what is lost is 2^-22 of the row's and the column's largest element. `bf16x6` writes each element as three bfloat16 numbers,
which have float32's range and together all of its digits, and leaves out the three smallest of nine products: what is lost is 2^-23
of each product of elements. `bf16x3` writes two and keeps three products: 2^-15 of each. Each part after the first is held times 2^8
for each part before it, so that the smallest elements keep their digits, too.

`fp16x1` scales as `fp16x3` does and writes one half: 2^-12 of each element is lost, as with TF32, and of elements of 2^-28 of their
vector's largest or less, 2^-40 of that. It has twice TF32's rate, and no element can leave its range.

Infinities keep their meaning, unless they meet a part that is zero where its element is not: in `fp16x3` an element that is 2^-39 of
its vector's largest or less.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from tools.codegen.ir.expr import LoweringError
from tools.codegen.templates.shared.access import Access, contiguous_strides
from tools.codegen.templates.shared.iteration_space import Space
from tools.codegen.templates.shared.prepack import Pass

LOW = {"fp16x3": "0.00048828125", "bf16x3": "0.00390625", "bf16x6": "0.00390625"}
"""2^-11 or 2^-8: what a part was multiplied by beyond the one before it, undone."""
SINGLE = "fp16x1"
"""The one whose operands have a single part: its digits are TF32's."""


@dataclass(frozen=True)
class SplitFloat:
    """One such way of multiplying."""

    parts: tuple[str, ...]
    """Names of the parts of an operand, the largest first."""
    nbytes: int
    """Of all parts of one element."""
    products: int
    """Products of parts that are kept."""
    scaled: bool = False
    """Whether a vector has an exponent of its own."""


SPLIT_FLOATS = {
    "fp16x3": SplitFloat(("high", "low"), 4, 3, scaled=True),
    "bf16x3": SplitFloat(("high", "low"), 4, 3),
    SINGLE: SplitFloat(("high",), 2, 1, scaled=True),
    "bf16x6": SplitFloat(("high", "middle", "low"), 6, 6),
}
"""By precision."""


@dataclass(frozen=True)
class Parts:
    """One operand as several parts, and the exponents of its vectors where they have any."""

    split_float: SplitFloat
    access: Access
    exponents: Access
    trailing: tuple[int, ...]
    """Atoms that lie after the summed dimension in memory."""

    @property
    def names(self) -> tuple[str, ...]:
        """What holds the parts."""
        return tuple(f"{self.access.name}_{part}" for part in self.split_float.parts)

    @property
    def exponent_names(self) -> tuple[str, ...]:
        """What holds the exponents; nothing where there are none."""
        return (f"{self.access.name}_exponents",) if self.split_float.scaled else ()

    @property
    def helpers(self) -> tuple[str, ...]:
        """The pass that writes the parts, after what it needs."""
        return ("power_of_two", "as_halves", "halves") if self.split_float.scaled else ("bfloat16_parts",)

    def host(self, space: Space) -> Pass:
        """Write the host's call of the pass."""
        made = (*self.names, *self.exponent_names)
        call = f"bfloat16_parts({self.access.name}, {len(self.names)})"
        if self.split_float.scaled:
            one = ", 1" if len(self.names) == 1 else ""
            call = f"halves({self.access.name}, n_inner, {space.monomial(self.trailing) or '1'}{one})"
        return Pass(self.access, f"{', '.join(made)} = {call}", made)


def parts_of(access: Access, precision: str, space: Space) -> Parts:
    """Say how an operand is written as parts; raises LoweringError where it cannot be."""
    if not access.meta.contiguous:
        raise LoweringError("an operand that is not contiguous is not split into parts")
    inner = set(space.axis("inner").atoms)
    order = [atom for dim in access.dims for atom in dim]
    last = max(place for place, atom in enumerate(order) if atom in inner)
    dims = tuple(tuple(atom for atom in dim if atom not in inner) for dim in access.dims)
    exponents = replace(access, dims=dims, strides=contiguous_strides(dims))
    return Parts(SPLIT_FLOATS[precision], access, exponents, tuple(order[last + 1 :]))


def sum_lines(precision: str, acc: str = "acc", left: str = "left", right: str = "right") -> list[str]:
    """Write how the products of one step's parts are added to `acc`: the smallest first, each sum in a fresh accumulator."""
    if precision == SINGLE:
        return [f"{acc} = tl.dot({left}_high, {right}_high, {acc})"]
    lines = [f"small = tl.dot({left}_high, {right}_low, tl.dot({left}_low, {right}_high))"]
    low = LOW[precision]
    if precision == "bf16x6":
        lines += [
            f"small = tl.dot({left}_middle, {right}_middle, small)",
            f"small = tl.dot({left}_high, {right}_middle, tl.dot({left}_middle, {right}_high, small * {low}))",
        ]
    # an addition would be folded into the product's accumulator; a multiply-add by one is not
    return [*lines, f"{acc} = tl.fma(small, {low}, tl.fma(tl.dot({left}_high, {right}_high), 1.0, {acc}))"]


def accumulated(precision: str) -> dict[str, str]:
    """Say how partial sums of products are added so that none of the digits is lost which a precision has."""
    return {"accumulate": "chunked" if precision in {*SPLIT_FLOATS, "tf32x3"} - {SINGLE} else "direct"}


def added_product(acc: str, pair: str, precision: str, *, chunked: bool) -> str:
    """Write that `acc` gains the product of a `pair` of tiles; `chunked` where no more than one step may be summed on tensor cores.

    With `tf32x3` Triton adds `acc` after its three products by itself; an addition of ours would be a second one.
    """
    given = f', input_precision="{precision}"' if precision else ""
    if chunked and precision != "tf32x3":
        # an addition would be folded into the product's accumulator; a multiply-add by one is not
        return f"{acc} = tl.fma(tl.dot({pair}{given}), 1.0, {acc})"
    return f"{acc} = tl.dot({pair}, {acc}{given})"
