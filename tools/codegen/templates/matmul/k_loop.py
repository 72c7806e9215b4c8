"""The K loop of a matrix product: plain or split-float operands, fetched by pointers or by tile descriptors."""

from __future__ import annotations

from dataclasses import dataclass

from tools.codegen.ir.expr import LoweringError
from tools.codegen.templates.matmul.layout import MatmulLayout, matrix_order
from tools.codegen.templates.matmul.legality import EXCHANGED
from tools.codegen.templates.shared.access import Access
from tools.codegen.templates.shared.iteration_space import Axis, Space
from tools.codegen.templates.shared.knob import ROUNDED, Settings
from tools.codegen.templates.shared.naming import Scope
from tools.codegen.templates.shared.prepack import Pass
from tools.codegen.templates.shared.split_float import SPLIT_FLOATS, Parts, added_product, parts_of, sum_lines

DESCRIPTORS = "descriptors"
TILE = {"rows": "BLOCK_M", "cols": "BLOCK_N", "inner": "BLOCK_K"}
"""Size of a tile along each axis."""


@dataclass
class MatmulLoop:
    """Writes the sums of one product."""

    space: Space
    plan: MatmulLayout
    parameters: Settings
    triangle: str = ""
    """Whether a tile is inside the triangle that is kept, as the kernel would ask; empty where all is."""
    convolves: bool = False
    """Whether it is a convolution: cuDNN rounds operands to the nearest where it takes TF32, and networks are as deep as it takes to tell.

    GoogLeNet on an H200: off by 2.8e-4 with digits cut off, by 8.5e-5 with both operands rounded, as PyTorch is; in 1,044 and 950 µs.
    """

    def __post_init__(self) -> None:
        """Find the parts of both operands where there are any."""
        self.precision = str(self.parameters["precision"]) if self.plan.dtype == "float32" else ""
        self.sides = (("left", self.plan.left, "mask_m"), ("right", self.plan.right, "mask_n"))
        self.parts: tuple[Parts, ...] = ()
        if self.precision in SPLIT_FLOATS:
            self.parts = tuple(parts_of(access, self.precision, self.space) for _, access, _ in self.sides)
        # short parts are read in either order
        self.exchanged = self.parameters.get("right") == EXCHANGED and not self.parts
        self.described = self.parameters.get("loads") == DESCRIPTORS
        self.rounds = self.precision == ROUNDED and self.convolves
        self.orders = tuple(matrix_order(self.plan, access) for _, access, _ in self.sides)
        if self.described and None in self.orders:
            raise LoweringError("an operand that is not one matrix in memory has no descriptor")

    def pointers(self) -> list[str]:
        """List the parameters that stand in place of the operands' pointers."""
        return [name if name.endswith("_tiles") else f"{name}_ptr" for name in self.arguments()]

    def arguments(self) -> list[str]:
        """List what the host passes for them."""
        found = []
        for place in range(2):
            names = self._sources(place)
            found += [f"{name}_tiles" for name in names] if self.described else list(names) if self.parts else []
            found += self.parts[place].exponent_names if self.parts else ()
        return found

    def helpers(self) -> tuple[str, ...]:
        """Name the passes and functions that the host calls."""
        passes = dict.fromkeys(helper for each in self.parts for helper in each.helpers)
        return (*passes, *(("described",) if self.described else ()), *(("nearest_tf32",) if self.rounds else ()))

    def _sources(self, place: int) -> tuple[str, ...]:
        """Name the tensors that one operand is read from."""
        return self.parts[place].names if self.parts else (self.sides[place][1].name,)

    def write(self, scope: Scope, begin: str = "0", end: str = "") -> None:
        """Write the loop from `begin` to `end`, which leaves the sum in `acc`."""
        inner = self.space.axis("inner")
        n_inner = self.space.monomial(inner.atoms)
        end = end or n_inner
        if self.triangle:
            # a tile wholly outside the triangle has nothing to sum
            scope.say(f"end = tl.where({self.triangle}, {end}, {begin})")
            end = "end"
        steps = [] if self.described else self._starts(scope, begin, inner)
        scope.say(f"acc = tl.zeros([{'BLOCK_N, BLOCK_M' if self.exchanged else 'BLOCK_M, BLOCK_N'}], dtype=tl.float32)")
        scope.say(f"for k in range({begin}, {end}, BLOCK_K):")
        loop = scope.nested()
        if self.described:
            self._fetch(loop)
        else:
            self._load(loop, n_inner)
        self._multiply(loop)
        for place, step in enumerate(steps):
            loop.say(f"{self.sides[place][0]}_tile += {step.format('BLOCK_K')}")
        if self.exchanged:
            scope.say("acc = tl.trans(acc)")
        if self.parts and self.parts[0].split_float.scaled:
            for place in range(2):
                self._load_exponent(scope, place)
            self._unscale(scope)

    def _starts(self, scope: Scope, begin: str, inner: Axis) -> list[str]:
        """Write where each operand's first tile lies, and return what a step along the sum adds."""
        along = ("tl.arange(0, BLOCK_K)[None, :]", "tl.arange(0, BLOCK_K)[:, None]")
        steps = []
        for place, (side, access, _) in enumerate(self.sides):
            steps.append(self._step(access, inner))
            start = along[place] if begin == "0" else f"({begin} + {along[place]})"
            first = [] if self.parts else [f"{access.name}_ptr"]
            scope.say(f"{side}_tile = {' + '.join([*first, *self._terms(access), steps[place].format(start)])}")
        return steps

    def _load(self, loop: Scope, n_inner: str) -> None:
        """Write the masked loads of one step."""
        rest = (f"tl.arange(0, BLOCK_K)[None, :] < {n_inner} - k", f"tl.arange(0, BLOCK_K)[:, None] < {n_inner} - k")
        for condition, masks in (("if EVEN_K:", ("", "")), ("else:", tuple(f" & ({each})" for each in rest))):
            loop.say(condition)
            branch = loop.nested()
            for place, (side, _, mask) in enumerate(self.sides):
                for name, source in self._pairs(place, side):
                    pointer = f"{source}_ptr + {side}_tile" if self.parts else f"{side}_tile"
                    branch.say(f"{name} = tl.load({pointer}, mask={mask}{masks[place]}, other=0.0)")

    def _fetch(self, loop: Scope) -> None:
        """Write the loads of one step by descriptors; what lies outside reads as zero."""
        starts = {"rows": "pid_m * BLOCK_M", "cols": "pid_n * BLOCK_N", "inner": "k"}
        for place, (side, _, _) in enumerate(self.sides):
            order = self.orders[place]
            assert order is not None
            turned = ".T" if (order[0] == "inner") == (side == "left") else ""
            for name, source in self._pairs(place, side):
                loop.say(f"{name} = {source}_tiles.load([{', '.join(starts[axis] for axis in order)}]){turned}")

    def _pairs(self, place: int, side: str) -> list[tuple[str, str]]:
        """Pair the variables of one operand with the tensors they come from."""
        if not self.parts:
            return [(side, self._sources(place)[0])]
        return [(f"{side}_{part}", name) for part, name in zip(self.parts[place].split_float.parts, self._sources(place), strict=True)]

    def _multiply(self, loop: Scope) -> None:
        if self.parts:
            for line in sum_lines(self.precision):
                loop.say(line)
        else:
            chunked = self.parameters["accumulate"] == "chunked"
            sides = ("tl.trans(right)", "tl.trans(left)") if self.exchanged else ("left", "right")
            pair = ", ".join(f"nearest_tf32({side})" if self.rounds else side for side in sides)
            loop.say(added_product("acc", pair, self.precision, chunked=chunked))

    def _load_exponent(self, scope: Scope, place: int) -> None:
        side, _, mask = self.sides[place]
        where = " + ".join([f"{self.parts[place].exponent_names[0]}_ptr", *self._terms(self.parts[place].exponents)])
        scope.say(f"{side}_exponent = tl.load({where}, mask={mask}, other=0)")

    def _unscale(self, scope: Scope) -> None:
        """Take both powers of two back, in two steps: their product may leave float32's range where the result does not."""
        scope.say("exponent = -(left_exponent + right_exponent)")
        scope.say("half = exponent >> 1")
        scope.say("acc = acc * power_of_two(half) * power_of_two(exponent - half)")

    def _terms(self, access: Access) -> list[str]:
        return [term for axis in self.space.axes if axis.name != "inner" and (term := self.space.along(access, axis))] or (
            ["0"] if self.parts else []
        )

    def _step(self, access: Access, inner: Axis) -> str:
        text = self.space.monomial(access.strides[inner.atoms[-1]])
        if not text:
            return "{}"
        return f"{{}} * {text}" if " " not in text else f"{{}} * ({text})"

    def passes(self) -> list[Pass]:
        """Write the host's passes that make parts."""
        return [each.host(self.space) for each in self.parts]

    def descriptors(self) -> list[str]:
        """Write the host's descriptors."""
        lines = []
        for place, order in enumerate(self.orders if self.described else ()):
            assert order is not None
            sizes = ", ".join(f"n_{axis}" for axis in order)
            tile = ", ".join(str(self.parameters[TILE[axis]]) for axis in order)
            lines += [f"{name}_tiles = described({name}, {sizes}, [{tile}])" for name in self._sources(place)]
        return lines
