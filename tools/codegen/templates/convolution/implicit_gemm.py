"""The K loop of the implicit GEMM: over the elements of a convolution's kernel and its input channels."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from tools.codegen.ir.geometry import Convolution
from tools.codegen.templates.convolution.kernel_walk import KernelWalk
from tools.codegen.templates.convolution.layout import ConvolutionLayout
from tools.codegen.templates.convolution.output_index import OutputIndex, wrapped
from tools.codegen.templates.convolution.slices import Slices
from tools.codegen.templates.convolution.split_float import LEAST_CHANNELS
from tools.codegen.templates.shared.knob import ROUNDED, Settings
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
    slices: Slices | None = None
    """Those of the result that a program makes, where it makes several."""

    @property
    def split(self) -> bool:
        """Whether they are read so."""
        return bool(self.parts)

    def helpers(self, *, packed: bool) -> tuple[str, ...]:
        """Name the passes that write the parts, after what they need."""
        if not self.split:
            return ()
        if self.convolution.scale >= 0:
            return ("power_of_two", "as_halves", "image_kernels", "packed_weight_halves")
        passes = ("packed_weight_halves", "packed_image_halves") if packed else ("image_halves",)
        return ("power_of_two", "as_halves", "image_kernels", *passes)

    def sources(self, name: str) -> list[str]:
        """Name what the kernel reads in the place of a tensor; images that come as halves have one power of two."""
        if not self.split:
            return [name]
        parts, handed = [f"{name}_{part}" for part in self.parts], self.convolution.scale >= 0 and name == self.plan.source.name
        return parts if handed else [*parts, f"{name}_exponents"]

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
        return KernelWalk(self.slices.rest if self.slices else self.convolution, self.plan, self.places)

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

    def unscale(self, scope: Scope) -> None:
        """Take both powers of two back, in two steps: their product may leave float32's range where the result does not."""
        if not self.split:
            return
        source, weight = self.plan.source.name, self.plan.weight.name
        off = "off_g" if self.convolution.transposed and self.plan.n_groups > 1 else "off_n"
        if self.convolution.scale >= 0:
            scale = self.plan.accesses[self.convolution.scale].name
            scope.say(f"exponent = 127 - (tl.load({scale}_ptr).to(tl.int32, bitcast=True) >> 23)")
        else:
            scope.say(f"exponent = -tl.load({source}_exponents_ptr{' + batch' if self.batched else ''})")
        scope.say(f"exponent = exponent - tl.load({weight}_exponents_ptr + {off}, mask=mask_n, other=0)")
        scope.say("half = exponent >> 1")
        scope.say("acc = acc * power_of_two(half) * power_of_two(exponent - half)")

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
        self._add(loop)

    def _add(self, loop: Scope, *names: str) -> None:
        for line in self._product(*names):
            loop.say(line)

    def _stepwise(self, scope: Scope, taps: str, left: tuple[str, str], right: tuple[str, str, str]) -> None:
        """Write steps of one element of the kernel: all lanes move by one distance, and bits say whose input lies inside."""
        (every, group), (column, element, along) = left, right
        walk = self.walk
        scope.say("lane_c = tl.arange(0, BLOCK_K)")
        scope.say(f"here = {wrapped(self.places.flat('at', 'in'))} * {every} + {group}lane_c[None, :]")
        # columns beyond the last are not stored: any weights will do
        scope.say(f"there = {column} + {along}lane_c[:, None]")
        reach = walk.reach(scope) if walk.marks else ""
        for acc in [f"acc_{each}" for each in range(self.slices.count)] if self.slices else ["acc"]:
            scope.say(f"{acc} = tl.zeros([BLOCK_M, BLOCK_N], tl.float32)")
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
        self._say_inside(loop, [*tests, "mask_k[None, :]"])
        if self.slices:
            self._slices(loop, self.slices, every, element)
            return
        moved = f" {walk.sign} {wrapped(walk.moved())} * {every}" if walk.moved() else ""
        self._read(loop, "left", self.plan.source.name, f"(image + first_c{moved}) + here", "inside")
        self._read(loop, "right", self.plan.weight.name, f"({element}first_c) + there", "mask_k[:, None]")
        self._add(loop)

    def _slices(self, loop: Scope, slices: Slices, every: str, element: str) -> None:
        """Write a step that reads the same element of every slice of the kernel, and what it meets in every slice of the input."""
        moved = self.walk.moved()
        for place in range(self.convolution.size[0]):
            which = element.replace("tap", f"(tap + {place * slices.taps})", 1) if place else element
            self._read(loop, f"right_{place}", self.plan.weight.name, f"({which}first_c) + there", "mask_k[:, None]")
        for place in slices.read:
            plane = slices.plane("in")
            steps = [text for text in ("" if place == 0 else plane if place == 1 else f"{place} * {plane}", moved) if text]
            offset = f"image + first_c + ({' + '.join(steps)}) * {every}" if steps else "image + first_c"
            self._read(loop, f"left_{place}", self.plan.source.name, f"({offset}) + here", f"inside & {slices.inside(place)}")
        for each, element_d, place in slices.sums():
            self._add(loop, f"acc_{each}", f"left_{place}", f"right_{element_d}")

    def _say_inside(self, loop: Scope, tests: Sequence[str]) -> None:
        """Write one test of several, a few to a line."""
        for place in range(0, len(tests), 4):
            loop.say(f"inside = {'inside & ' if place else ''}{' & '.join(tests[place : place + 4])}")

    def _read(self, loop: Scope, side: str, name: str, offset: str, mask: str) -> None:
        """Write the loads of one operand, or of its parts."""
        for place, part in enumerate(self.sources(name)[: len(self.parts) or 1]):
            made = f"{side}_{self.parts[place]}" if self.split else side
            loop.say(f"{made} = tl.load({part}_ptr + {offset}, mask={mask}, other=0.0)")

    def _product(self, acc: str = "acc", left: str = "left", right: str = "right") -> list[str]:
        """Write that a sum gains the product of two tiles, or those of their parts."""
        if self.split:
            return sum_lines(str(self.parameters["precision"]), acc, left, right)
        precision = str(self.parameters["precision"]) if self.plan.dtype == "float32" else ""
        # weights are rounded before the kernel
        pair = f"nearest_tf32({left}), {right}" if precision == ROUNDED else f"{left}, {right}"
        return [added_product(acc, pair, precision, chunked=self.parameters["accumulate"] == "chunked")]
