"""The K loop of the implicit GEMM: over the elements of a convolution's kernel and its input channels."""

from __future__ import annotations

import math
from dataclasses import dataclass

from tools.codegen.ir.geometry import Convolution
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

    def write(self, scope: Scope) -> None:
        """Write the loop over kernel elements and input channels."""
        image, groups = " * ".join(f"in_{letter}" for letter in self.plan.letters), self.plan.n_groups
        every, group = ("n_channels", "") if groups == 1 else (f"(n_channels * {groups})", "group * n_channels + ")
        batch = f" + batch * ({image} * {every.strip('()')})" if self.batched else ""
        source, weight = self.plan.source.name, self.plan.weight.name
        scope.say(f"image = {batch.removeprefix(' + ') or '0'}" if self.split else f"image = {source}_ptr{batch}")
        taps = self._tap_counts(scope)
        scope.say("acc = tl.zeros([BLOCK_M, BLOCK_N], tl.float32)")
        loop = self._steps(scope, taps)
        self._walk(loop)
        tests = ["mask_m", "mask_k[None, :]"]
        for place, letter in enumerate(self.plan.letters):
            if self._may_leave(place):
                tests += [f"(here_{letter} >= 0)", f"(here_{letter} < in_{letter})"]
        loop.say(f"inside = {' & '.join(tests[:4])}")
        for place in range(4, len(tests), 2):
            loop.say(f"inside = inside & {' & '.join(tests[place : place + 2])}")
        where = f"{wrapped(self.places.flat('here', 'in'))} * {every} + {group}off_c[None, :]"
        if self.split:
            loop.say(f"here = image + {where}")
        for place, part in enumerate(self.sources(source)[: len(self.parts) or 1]):
            pointer, made = (f"{part}_ptr + here", f"left_{self.parts[place]}") if self.split else (f"image + {where}", "here")
            loop.say(f"{made} = tl.load({pointer}, mask=inside, other=0.0)")
        # the weights of a transposed convolution have every input channel of one group's results, the others one group's of every result
        across, along, off = (every, group, "off_g") if self.convolution.transposed and groups > 1 else ("n_channels", "", "off_n")
        element = "" if self.single else f"tap * {across} + "
        there = f"({element}{along}off_c)[:, None]" if self.apart else f"{element}{along}off_c[:, None]"
        first = "" if self.split else f"{weight}_ptr + "
        pitch = across if self.single else f"({self.taps} * {across.strip('()')})"
        loop.say(f"there = {first}{off} * {pitch} + {there}")
        for place, part in enumerate(self.sources(weight)[: len(self.parts) or 1]):
            pointer, made = (f"{part}_ptr + there", f"right_{self.parts[place]}") if self.split else ("there", "weights")
            loop.say(f"{made} = tl.load({pointer}, mask=mask_n & mask_k[:, None], other=0.0)")
        for line in sum_lines(str(self.parameters["precision"])) if self.split else [self._product()]:
            loop.say(line)
        if self.split:
            self._unscale(scope, source, weight, "off_g" if self.convolution.transposed and groups > 1 else "off_n")

    def _unscale(self, scope: Scope, source: str, weight: str, off: str) -> None:
        """Take both powers of two back, in two steps: their product may leave float32's range where the result does not."""
        scope.say(f"exponent = -tl.load({source}_exponents_ptr{' + batch' if self.batched else ''})")
        scope.say(f"exponent = exponent - tl.load({weight}_exponents_ptr + {off}, mask=mask_n, other=0)")
        scope.say("half = exponent >> 1")
        scope.say("acc = acc * power_of_two(half) * power_of_two(exponent - half)")

    def _steps(self, scope: Scope, taps: str) -> Scope:
        """Open the loop: a step takes a block of channels of one kernel element, or where channels are few of several."""
        if self.apart:
            scope.say(f"for start in range(0, {taps} * n_channels, BLOCK_K):")
            loop = scope.nested()
            loop.say("off_k = start + tl.arange(0, BLOCK_K)")
            loop.say("tap = off_k // n_channels")
            loop.say("off_c = off_k % n_channels")
            loop.say(f"mask_k = off_k < {taps} * n_channels")
            return loop
        if self.single:
            scope.say("for start in range(0, n_channels, BLOCK_K):")
            loop = scope.nested()
            loop.say("off_c = start + tl.arange(0, BLOCK_K)")
            loop.say("mask_k = off_c < n_channels")
            return loop
        scope.say("steps = tl.cdiv(n_channels, BLOCK_K)")
        scope.say(f"for step in range(0, {taps} * steps):")
        loop = scope.nested()
        loop.say("tap = step // steps")
        loop.say("off_c = step % steps * BLOCK_K + tl.arange(0, BLOCK_K)")
        loop.say("mask_k = off_c < n_channels")
        return loop

    def _tap_counts(self, scope: Scope) -> str:
        """Write how many kernel elements reach a position; those of strided transposed dimensions depend on its remainder."""
        if not self.places.phased:
            return str(self.taps)
        factors = []
        for place, letter in enumerate(self.plan.letters):
            size, stride = self.convolution.size[place], self.convolution.stride[place]
            if stride > 1:
                common, apart = self.places.congruence(place)
                count = f"({size - 1} - first_{letter} + {apart}) // {apart}"
                if common > 1:
                    reached = f"({self.places.remainders()[letter]} + {self.convolution.padding[place]}) % {common} == 0"
                    count = f"tl.where({reached}, {count}, 0)"
                scope.say(f"taps_{letter} = {count}")
                factors.append(f"taps_{letter}")
            else:
                factors.append(str(size))
        return " * ".join(factors)

    def _walk(self, loop: Scope) -> None:
        """Write where one kernel element finds its input, and which element of the weights it is."""
        c, rest, spread = self.convolution, "tap", "[None, :]" if self.apart else ""
        which: list[str] = []
        for place in range(len(self.plan.letters) - 1, -1, -1):
            letter, size, stride = self.plan.letters[place], c.size[place], c.stride[place]
            strided = self.places.phased and stride > 1
            count = f"taps_{letter}" if strided else str(size)
            if count == "1":
                which.insert(0, "")
                loop.say(f"here_{letter} = at_{letter}")
                continue
            loop.say(f"step_{letter} = " + (rest if place == 0 else f"{rest} % {count}"))
            rest = f"{rest} // {count}"
            common, apart = self.places.congruence(place) if strided else (1, 1)
            which.insert(0, f"(first_{letter} + step_{letter}{f' * {apart}' if apart > 1 else ''})" if strided else f"step_{letter}")
            dilation = c.dilation[place] // common
            moved = f"step_{letter}{spread}" + (f" * {dilation}" if dilation > 1 else "")
            loop.say(f"here_{letter} = at_{letter} {'-' if c.transposed else '+'} {moved}")
        if self.places.phased:
            loop.say(f"tap = {self._which(which)}")

    def _which(self, parts: list[str]) -> str:
        """Write the number of a kernel element from its number along each dimension; empty where there is one."""
        text = ""
        for size, part in zip(self.convolution.size, parts, strict=True):
            text = f"{wrapped(text)} * {size}" if text and size > 1 else text
            text = " + ".join(each for each in (text, part) if each)
        return text or "0"

    def _may_leave(self, place: int) -> bool:
        """Whether a position may look outside of the input along a dimension."""
        return self.convolution.transposed or self.convolution.padding[place] > 0

    def _product(self) -> str:
        precision = str(self.parameters["precision"]) if self.plan.dtype == "float32" else ""
        return added_product("acc", "here, weights", precision, chunked=self.parameters["accumulate"] == "chunked")
