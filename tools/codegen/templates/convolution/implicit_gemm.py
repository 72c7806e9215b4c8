"""The K loop of the implicit GEMM: over the elements of a convolution's kernel and its input channels."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from tools.codegen.ir.geometry import Convolution
from tools.codegen.templates.convolution.kernel_walk import KernelWalk
from tools.codegen.templates.convolution.layout import ConvolutionLayout
from tools.codegen.templates.convolution.output_index import OutputIndex, wrapped
from tools.codegen.templates.convolution.split_float import LEAST_CHANNELS
from tools.codegen.templates.shared.knob import Settings
from tools.codegen.templates.shared.naming import Scope
from tools.codegen.templates.shared.split_float import added_product, sum_lines


@dataclass(frozen=True)
class ImplicitGemmLoop:
    """Writes the sums of one convolution."""

    convolution: Convolution
    plan: ConvolutionLayout
    places: OutputIndex
    parameters: Settings
    batched: bool
    parts: tuple[str, ...] = ()
    """Shorter parts that input and weights are read as, the largest first; empty where they are read as they are."""

    @property
    def split(self) -> bool:
        """Whether they are read so."""
        return bool(self.parts)

    def helpers(self, *, packed: bool) -> tuple[str, ...]:
        """Name the passes that write the parts, after what they need."""
        if not self.split:
            return ()
        passes = ("packed_weight_halves", "packed_image_halves") if packed else ("image_halves",)
        return ("power_of_two", "as_halves", "image_kernels", *passes)

    def sources(self, name: str) -> list[str]:
        """Name what the kernel reads in the place of a tensor."""
        return [*(f"{name}_{part}" for part in self.parts), f"{name}_exponents"] if self.split else [name]

    @property
    def apart(self) -> bool:
        """Whether a step takes elements of several kernel positions."""
        return self.plan.n_inputs < LEAST_CHANNELS and not self.split

    @property
    def taps(self) -> int:
        """Elements of the kernel."""
        return math.prod(self.convolution.size)

    @property
    def single(self) -> bool:
        """Whether all elements of the kernel have become channels."""
        return self.split and self.taps == 1

    @property
    def walk(self) -> KernelWalk:
        """What one element of the kernel means."""
        return KernelWalk(self.convolution, self.plan, self.places)

    def write(self, scope: Scope) -> None:
        """Write the loop over kernel elements and input channels."""
        groups = self.plan.n_groups
        every, group = ("n_channels", "") if groups == 1 else (f"(n_channels * {groups})", "group * n_channels + ")
        # the weights of a transposed convolution have every input channel of one group's results, the others one group's of every result
        across, along, off = (every, group, "off_g") if self.convolution.transposed and groups > 1 else ("n_channels", "", "off_n")
        pitch = across if self.single else f"({self.taps} * {across.strip('()')})"
        element = "" if self.single else f"tap * {across} + "
        image = f"batch * ({' * '.join(f'in_{letter}' for letter in self.plan.letters)} * {every.strip('()')})" if self.batched else "0"
        scope.say(f"image = {image}")
        taps = self.walk.tap_counts(scope)
        if self.apart:
            self._scattered(scope, taps, (every, group), (f"{off} * {pitch}", f"{element}{along}"))
        else:
            self._stepwise(scope, taps, (every, group), (f"tl.where(mask_n, {off}, 0) * {pitch}", element, along))
        if self.split:
            self._unscale(scope, self.plan.source.name, self.plan.weight.name, off)

    def _scattered(self, scope: Scope, taps: str, left: tuple[str, str], right: tuple[str, str]) -> None:
        """Write steps in which each lane finds an element of the kernel of its own."""
        (every, group), (column, element) = left, right
        scope.say("acc = tl.zeros([BLOCK_M, BLOCK_N], tl.float32)")
        scope.say(f"for start in range(0, {taps} * n_channels, BLOCK_K):")
        loop = scope.nested()
        loop.say("off_k = start + tl.arange(0, BLOCK_K)")
        loop.say("tap = off_k // n_channels")
        loop.say("off_c = off_k % n_channels")
        loop.say(f"mask_k = off_k < {taps} * n_channels")
        self.walk.steps(loop)
        self.walk.inputs(loop, "[None, :]")
        self._say_inside(loop, ["mask_m", "mask_k[None, :]", *self.walk.inside()])
        loop.say(f"here = image + {wrapped(self.places.flat('here', 'in'))} * {every} + {group}off_c[None, :]")
        loop.say(f"left = tl.load({self.plan.source.name}_ptr + here, mask=inside, other=0.0)")
        loop.say(f"there = {column} + ({element}off_c)[:, None]")
        loop.say(f"right = tl.load({self.plan.weight.name}_ptr + there, mask=mask_n & mask_k[:, None], other=0.0)")
        loop.say(self._product())

    def _stepwise(self, scope: Scope, taps: str, left: tuple[str, str], right: tuple[str, str, str]) -> None:
        """Write steps of one element of the kernel: all lanes move by one distance, and bits say whose input lies inside."""
        (every, group), (column, element, along) = left, right
        walk = self.walk
        scope.say("lane_c = tl.arange(0, BLOCK_K)")
        scope.say(f"here = {wrapped(self.places.flat('at', 'in'))} * {every} + {group}lane_c[None, :]")
        # columns beyond the last are not stored: any weights will do
        scope.say(f"there = {column} + {along}lane_c[:, None]")
        reach = walk.reach(scope) if walk.marks else ""
        scope.say("acc = tl.zeros([BLOCK_M, BLOCK_N], tl.float32)")
        if not self.single:
            scope.say("steps = tl.cdiv(n_channels, BLOCK_K)")
        scope.say("for first_c in range(0, n_channels, BLOCK_K):" if self.single else f"for step in range(0, {taps} * steps):")
        loop = scope.nested()
        if not self.single:
            loop.say("tap = step // steps")
            loop.say("first_c = step % steps * BLOCK_K")
        # constant, and no test, where channels fill every step
        loop.say("mask_k = (first_c + lane_c < n_channels) | (n_channels % BLOCK_K == 0)")
        walk.steps(loop)
        tests = [f"((({reach} >> ({walk.bit()})) & 1) != 0)"] if reach else []
        if not walk.marks:
            walk.inputs(loop, "")
            tests = list(walk.inside())
        moved = f" {walk.sign} {wrapped(walk.moved())} * {every}" if walk.moved() else ""
        self._say_inside(loop, [*tests, "mask_k[None, :]"])
        self._read(loop, "left", self.plan.source.name, f"(image + first_c{moved}) + here", "inside")
        self._read(loop, "right", self.plan.weight.name, f"({element}first_c) + there", "mask_k[:, None]")
        for line in sum_lines(str(self.parameters["precision"])) if self.split else [self._product()]:
            loop.say(line)

    def _say_inside(self, loop: Scope, tests: Sequence[str]) -> None:
        """Write one test of several, a few to a line."""
        for place in range(0, len(tests), 4):
            loop.say(f"inside = {'inside & ' if place else ''}{' & '.join(tests[place : place + 4])}")

    def _read(self, loop: Scope, side: str, name: str, offset: str, mask: str) -> None:
        """Write the loads of one operand, or of its parts."""
        for place, part in enumerate(self.sources(name)[: len(self.parts) or 1]):
            made = f"{side}_{self.parts[place]}" if self.split else side
            loop.say(f"{made} = tl.load({part}_ptr + {offset}, mask={mask}, other=0.0)")

    def _unscale(self, scope: Scope, source: str, weight: str, off: str) -> None:
        """Take both powers of two back, in two steps: their product may leave float32's range where the result does not."""
        scope.say(f"exponent = -tl.load({source}_exponents_ptr{' + batch' if self.batched else ''})")
        scope.say(f"exponent = exponent - tl.load({weight}_exponents_ptr + {off}, mask=mask_n, other=0)")
        scope.say("half = exponent >> 1")
        scope.say("acc = acc * power_of_two(half) * power_of_two(exponent - half)")

    def _product(self) -> str:
        precision = str(self.parameters["precision"]) if self.plan.dtype == "float32" else ""
        return added_product("acc", "left, right", precision, chunked=self.parameters["accumulate"] == "chunked")
