"""The loop of a product over its summed dimension, for each way of multiplying.

`fp16x3` multiplies float32 operands on half-precision tensor cores: a pass before the product scales every row of the left
and every column of the right by a power of two, so that its largest element lies in [2^14, 2^15), and writes each element as
the sum of two halves (the second times 2^11). Of the four products of halves the smallest is left out: what is lost is 2^-22 of
the row's and the column's largest element. An infinity times an element that is 2^-39 of its column or less gives NaN.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from tools.codegen.expressions import LoweringError
from tools.codegen.frame import Parameters
from tools.codegen.naming import Scope
from tools.codegen.product_space import ProductLayout
from tools.codegen.spaces import Access, Axis, Space, contiguous_strides

LOW = "0.00048828125"
"""2^-11: what the second half was multiplied by, undone."""


@dataclass(frozen=True)
class Halves:
    """One operand as two halves and the exponents of its vectors."""

    access: Access
    exponents: Access
    trailing: tuple[int, ...]
    """Atoms that lie after the summed dimension in memory."""

    @property
    def names(self) -> tuple[str, ...]:
        """What the kernel takes in place of the operand."""
        name = self.access.name
        return f"{name}_high", f"{name}_low", f"{name}_exponents"


@dataclass
class ProductLoop:
    """Writes the sums of one product."""

    space: Space
    plan: ProductLayout
    parameters: Parameters
    triangle: str = ""
    """Whether a tile is inside the triangle that is kept, as the kernel would ask; empty where all is."""

    def __post_init__(self) -> None:
        """Find the halves of both operands where there are any."""
        self.halves: tuple[Halves, ...] = ()
        if self.plan.dtype == "float32" and self.parameters["precision"] == "fp16x3":
            self.halves = (self._halves(self.plan.left), self._halves(self.plan.right))

    def pointers(self) -> list[str]:
        """List the pointers that stand in place of the operands'."""
        return [f"{name}_ptr" for each in self.halves for name in each.names]

    def write(self, scope: Scope, begin: str = "0", end: str = "") -> None:
        """Write the loop from `begin` to `end`, which leaves the sum in `acc`."""
        inner = self.space.axis("inner")
        n_inner = self.space.monomial(inner.atoms)
        end = end or n_inner
        if self.triangle:
            # a tile wholly outside the triangle has nothing to sum
            scope.say(f"end = tl.where({self.triangle}, {end}, {begin})")
            end = "end"
        steps = [self._step(access, inner) for access in (self.plan.left, self.plan.right)]
        along = ("tl.arange(0, BLOCK_K)[None, :]", "tl.arange(0, BLOCK_K)[:, None]")
        for place, (side, access) in enumerate((("left", self.plan.left), ("right", self.plan.right))):
            start = along[place] if begin == "0" else f"({begin} + {along[place]})"
            first = [] if self.halves else [f"{access.name}_ptr"]
            scope.say(f"{side}_tile = {' + '.join([*first, *self._terms(access), steps[place].format(start)])}")
        scope.say("acc = tl.zeros([BLOCK_M, BLOCK_N], dtype=tl.float32)")
        scope.say(f"for k in range({begin}, {end}, BLOCK_K):")
        loop = scope.nested()
        loop.say("if EVEN_K:")
        self._loads(loop.nested(), ("mask_m", "mask_n"))
        loop.say("else:")
        self._loads(loop.nested(), (f"mask_m & ({along[0]} < {n_inner} - k)", f"mask_n & ({along[1]} < {n_inner} - k)"))
        self._multiply(loop)
        loop.say(f"left_tile += {steps[0].format('BLOCK_K')}")
        loop.say(f"right_tile += {steps[1].format('BLOCK_K')}")
        if self.halves:
            self._unscale(scope)

    def _loads(self, scope: Scope, masks: tuple[str, str]) -> None:
        for place, side in enumerate(("left", "right")):
            if self.halves:
                high, low, _ = self.halves[place].names
                scope.say(f"{side}_high = tl.load({high}_ptr + {side}_tile, mask={masks[place]}, other=0.0)")
                scope.say(f"{side}_low = tl.load({low}_ptr + {side}_tile, mask={masks[place]}, other=0.0)")
            else:
                scope.say(f"{side} = tl.load({side}_tile, mask={masks[place]}, other=0.0)")

    def _multiply(self, loop: Scope) -> None:
        precision = "" if self.plan.dtype != "float32" else f', input_precision="{self.parameters["precision"]}"'
        if self.halves:
            loop.say("small = tl.dot(left_high, right_low, tl.dot(left_low, right_high))")
            loop.say(f"acc = tl.fma(small, {LOW}, tl.fma(tl.dot(left_high, right_high), 1.0, acc))")
        elif self.parameters["accumulate"] == "chunked":
            # an addition would be folded into the product's accumulator; a multiply-add by one is not
            loop.say(f"acc = tl.fma(tl.dot(left, right{precision}), 1.0, acc)")
        else:
            loop.say(f"acc = tl.dot(left, right, acc{precision})")

    def _unscale(self, scope: Scope) -> None:
        """Take both powers of two back, in two steps: their product may leave float32's range where the result does not."""
        for side, halves, mask in zip(("left", "right"), self.halves, ("mask_m", "mask_n"), strict=True):
            where = " + ".join([f"{halves.names[2]}_ptr", *self._terms(halves.exponents)])
            scope.say(f"{side}_exponent = tl.load({where}, mask={mask}, other=0)")
        scope.say("exponent = -(left_exponent + right_exponent)")
        scope.say("half = exponent >> 1")
        scope.say("acc = acc * power_of_two(half) * power_of_two(exponent - half)")

    def _terms(self, access: Access) -> list[str]:
        return [term for axis in self.space.axes if axis.name != "inner" and (term := self.space.along(access, axis))] or (
            ["0"] if self.halves else []
        )

    def _step(self, access: Access, inner: Axis) -> str:
        text = self.space.monomial(access.strides[inner.atoms[-1]])
        if not text:
            return "{}"
        return f"{{}} * {text}" if " " not in text else f"{{}} * ({text})"

    def _halves(self, access: Access) -> Halves:
        if not access.meta.contiguous:
            raise LoweringError("an operand that is not contiguous is not split into halves")
        inner = set(self.space.axis("inner").atoms)
        order = [atom for dim in access.dims for atom in dim]
        last = max(place for place, atom in enumerate(order) if atom in inner)
        dims = tuple(tuple(atom for atom in dim if atom not in inner) for dim in access.dims)
        strides = contiguous_strides(dims)
        return Halves(access, replace(access, dims=dims, strides=strides), tuple(order[last + 1 :]))

    def host(self) -> list[str]:
        """Write the host's passes that make the halves."""
        lines = []
        for each in self.halves:
            trailing = self.space.monomial(each.trailing) or "1"
            lines.append(f"{', '.join(each.names)} = halves({each.access.name}, n_inner, {trailing})")
        return lines
