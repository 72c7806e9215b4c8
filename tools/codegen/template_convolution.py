"""The template of dense convolutions: a product whose left operand is gathered, position by position, from channels-last images.

One program makes a tile of positions by channels. Input and weights are brought to channels last before the kernel, where they do
not lie so, so that each step of the sum is contiguous in both. A transposed convolution with strides is several convolutions, one for
each remainder of the positions: a program takes positions of one remainder, and only the elements of the kernel that reach them.
"""

from __future__ import annotations

import math

from tools.codegen.body import Body
from tools.codegen.convolution_space import OWN_NAMES, convolution_layout
from tools.codegen.expressions import LoweringError
from tools.codegen.frame import Frame, Parameters, RegionText, allocation, block, summary
from tools.codegen.kernel import Kernel
from tools.codegen.naming import Names, Scope
from tools.codegen.sliding import Convolution

NAME = "convolution"
LEAST_CHANNELS = 16
"""Input channels below which a step of the sum takes elements of several kernel positions."""


def emit(kernel: Kernel, name: str, parameters: Parameters) -> RegionText:
    """Write the kernel and its host function."""
    assert kernel.convolution is not None
    return _Writer(kernel, kernel.convolution, name, parameters).write()


class _Writer:
    """Writes one convolution's region."""

    def __init__(self, kernel: Kernel, convolution: Convolution, name: str, parameters: Parameters) -> None:
        self.name, self.parameters, self.convolution = name, parameters, convolution
        plan = convolution_layout(kernel)
        self.plan, self.letters, self.source, self.weight = plan, plan.letters, plan.source, plan.weight
        self.reads = tuple(access for access in plan.accesses if not access.is_output)
        self.writes = tuple(access for access in plan.accesses if access.is_output)
        self.space = plan.space(kernel)
        self.batched = plan.axes[0].name == "outer"
        self.apart, self.groups = plan.n_inputs < LEAST_CHANNELS, plan.n_groups
        self.taps = 1
        for size in convolution.size:
            self.taps *= size
        self.body = Body(self.space, Names(OWN_NAMES), self._load, self._reduce)
        self.frame = Frame(self.space, f"{name}_kernel", Names(), self.reads, self.writes, self.body, {"rows": "mask_m", "cols": "mask_n"})

    @property
    def phased(self) -> bool:
        """Whether positions are taken by their remainders."""
        return self.plan.n_phases > 1

    def write(self) -> RegionText:
        """Write kernel and host function."""
        lines: list[str] = []
        scope = Scope(lines, "    ")
        self._sum(scope)
        scope.names[self.convolution.expr] = "acc"
        for output, access in zip(self.space.kernel.outputs, self.writes, strict=True):
            self.frame.store(scope, access, self.body.assign(scope, output.expr))
        text = self.frame.finish([*self._head(), *lines])
        own, count = self.frame.signature(["BLOCK_M", "BLOCK_N", "BLOCK_K"]), len(self.frame.tensors())
        self.extents = [name for name in self._extent_names() if name in self.frame.used]
        kernel = [
            "@triton.jit",
            *block(f"def {self.name}_kernel", [*own[:count], *self.extents, *own[count:]], ":"),
            f'    """Positions by channels a program, input channels last: {summary(self.space.kernel, self.reads, self.writes)}."""',
            *text,
        ]
        inputs, outputs = tuple(access.ref for access in self.reads), tuple(access.ref for access in self.writes)
        return RegionText(self.name, inputs, outputs, "\n".join([*kernel, "", "", *self._host()]), tuple(self.body.helpers))

    def _extent_names(self) -> list[str]:
        return [f"{kind}_{letter}" for kind in ("in", "out") for letter in self.letters] + ["n_channels"]

    def _head(self) -> list[str]:
        lines = ["pid = tl.program_id(0)", f"tiles_m = tl.cdiv({self._places()}, BLOCK_M)", *self._column_tiles()]
        self.space.monomial(self.space.axis("cols").atoms)
        if not self.phased:
            self.space.monomial(self.space.axis("rows").atoms)
        lines = [*self._place_counts(), *lines]
        if self.batched:
            phases = f" * {self.plan.n_phases}" if self.phased else ""
            lines += [f"batch = (pid // (tiles_m * tiles_n{phases})).to(tl.int64)"]
        if self.phased:
            lines += [f"phase = pid // (tiles_m * tiles_n) % {self.plan.n_phases}"]
        lines += ["tile = pid % (tiles_m * tiles_n)"]
        place = "place" if self.phased else "off_m"
        lines += [f"{place} = tile // tiles_n * BLOCK_M + tl.arange(0, BLOCK_M)[:, None]", *self._positions()]
        lines += [
            *self.space.parts(self.space.axis("rows")),
            *self._columns(),
        ]
        return ["    " + line for line in lines]

    def _column_tiles(self) -> list[str]:
        """Write how many tiles the channels of the result make; a tile has channels of one group."""
        if self.groups == 1:
            return ["tiles_n = tl.cdiv(n_cols, BLOCK_N)"]
        return [f"n_group = n_cols // {self.groups}", "tiles_g = tl.cdiv(n_group, BLOCK_N)", f"tiles_n = {self.groups} * tiles_g"]

    def _columns(self) -> list[str]:
        """Write the channels of the tile."""
        lane = "tl.arange(0, BLOCK_N)[None, :]"
        if self.groups == 1:
            return [f"off_n = tile % tiles_n * BLOCK_N + {lane}", "mask_n = off_n < n_cols"]
        return [
            "tile_n = tile % tiles_n",
            "group = tile_n // tiles_g",
            f"off_g = tile_n % tiles_g * BLOCK_N + {lane}",
            "off_n = group * n_group + off_g",
            "mask_n = off_g < n_group",
        ]

    def _places(self) -> str:
        return "n_places" if self.phased else "n_rows"

    def _place_counts(self) -> list[str]:
        """Write how many positions have one remainder, along each dimension and in all."""
        if not self.phased:
            return []
        lines = []
        for letter, stride in zip(self.letters, self.convolution.stride, strict=True):
            lines.append(f"places_{letter} = " + (f"tl.cdiv(out_{letter}, {stride})" if stride > 1 else f"out_{letter}"))
        return [*lines, f"n_places = {' * '.join(f'places_{letter}' for letter in self.letters)}"]

    def _positions(self) -> list[str]:
        """Write where each position of the tile lies in the result, and where its sum starts in the input."""
        c, letters = self.convolution, self.letters
        rest, across = ("place", "places") if self.phased else ("off_m", "out")
        remainders, lines = self._remainders(), []
        for place in range(len(letters) - 1, -1, -1):
            letter, stride = letters[place], c.stride[place]
            here = rest if place == 0 else f"{rest} % {across}_{letter}"
            rest = f"{rest} // {across}_{letter}"
            if letter in remainders:
                lines += self._first(place, letter, remainders[letter])
                here = f"{here} * {stride} + {remainders[letter]}"
            lines.append(f"off_{letter} = {here}")
        if self.phased:
            tests = " & ".join(f"(off_{letter} < out_{letter})" for letter in letters)
            lines += [f"mask_m = (place < n_places) & {tests}", f"off_m = {self._flat('off', 'out')}"]
        else:
            lines.append("mask_m = off_m < n_rows")
        return [*lines, *(f"at_{letter} = {self._start(place, letter)}" for place, letter in enumerate(letters))]

    def _first(self, place: int, letter: str, remainder: str) -> list[str]:
        """Write the first element of the kernel that reaches positions of one remainder; the others follow at equal distances.

        Element k reaches position p where p + padding - k * dilation is a multiple of the stride: a congruence in k.
        """
        common, apart = self._congruence(place)
        reached = f"({remainder} + {self.convolution.padding[place]})"
        inverse = pow(self.convolution.dilation[place] // common, -1, apart)
        scaled = f"{reached} // {common}" if common > 1 else reached
        return [f"first_{letter} = {scaled}{f' * {inverse}' if inverse > 1 else ''} % {apart}"]

    def _congruence(self, place: int) -> tuple[int, int]:
        """Tell which remainders any element of the kernel reaches (multiples of the first number), and how far apart those elements lie."""
        stride = self.convolution.stride[place]
        common = math.gcd(stride, self.convolution.dilation[place])
        return common, stride // common

    def _remainders(self) -> dict[str, str]:
        """Write a position's remainder along each dimension that has several, by letter."""
        if not self.phased:
            return {}
        found, rest, left = {}, "phase", self.plan.n_phases
        for letter, stride in list(zip(self.letters, self.convolution.stride, strict=True))[::-1]:
            if stride > 1:
                left //= stride
                found[letter] = rest if left == 1 else f"{rest} % {stride}"
                rest = f"{rest} // {stride}"
        return found

    def _flat(self, index: str, size: str) -> str:
        """Write one number for a position along all spatial dimensions."""
        text = f"{index}_{self.letters[0]}"
        for letter in self.letters[1:]:
            text = f"{_wrapped(text)} * {size}_{letter} + {index}_{letter}"
        return text

    def _start(self, place: int, letter: str) -> str:
        c = self.convolution
        padding, stride = c.padding[place], c.stride[place]
        if not c.transposed:
            return f"off_{letter}" + (f" * {stride}" if stride > 1 else "") + (f" - {padding}" if padding else "")
        text = f"off_{letter}" + (f" + {padding}" if padding else "")
        dilation = f" * {c.dilation[place]}" if c.dilation[place] > 1 else ""
        return f"({text} - first_{letter}{dilation}) // {stride}" if stride > 1 else text

    def _sum(self, scope: Scope) -> None:
        """Write the loop over kernel elements and input channels."""
        image, groups = " * ".join(f"in_{letter}" for letter in self.letters), self.groups
        every, group = ("n_channels", "") if groups == 1 else (f"(n_channels * {groups})", "group * n_channels + ")
        batch = f" + batch * ({image} * {every.strip('()')})" if self.batched else ""
        scope.say(f"image = {self.source.name}_ptr{batch}")
        taps = self._tap_counts(scope)
        scope.say("acc = tl.zeros([BLOCK_M, BLOCK_N], tl.float32)")
        loop = self._steps(scope, taps)
        self._walk(loop)
        tests = ["mask_m", "mask_k[None, :]"]
        for place, letter in enumerate(self.letters):
            if self._may_leave(place):
                tests += [f"(here_{letter} >= 0)", f"(here_{letter} < in_{letter})"]
        loop.say(f"inside = {' & '.join(tests[:4])}")
        for place in range(4, len(tests), 2):
            loop.say(f"inside = inside & {' & '.join(tests[place : place + 2])}")
        where = f"{_wrapped(self._flat('here', 'in'))} * {every} + {group}off_c[None, :]"
        loop.say(f"here = tl.load(image + {where}, mask=inside, other=0.0)")
        # the weights of a transposed convolution have every input channel of one group's results, the others one group's of every result
        across, along, off = (every, group, "off_g") if self.convolution.transposed and groups > 1 else ("n_channels", "", "off_n")
        there = f"(tap * {across} + {along}off_c)[:, None]" if self.apart else f"tap * {across} + {along}off_c[:, None]"
        loop.say(f"there = {self.weight.name}_ptr + {off} * ({self.taps} * {across.strip('()')}) + {there}")
        loop.say("weights = tl.load(there, mask=mask_n & mask_k[:, None], other=0.0)")
        loop.say(self._product())

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
        scope.say("steps = tl.cdiv(n_channels, BLOCK_K)")
        scope.say(f"for step in range(0, {taps} * steps):")
        loop = scope.nested()
        loop.say("tap = step // steps")
        loop.say("off_c = step % steps * BLOCK_K + tl.arange(0, BLOCK_K)")
        loop.say("mask_k = off_c < n_channels")
        return loop

    def _tap_counts(self, scope: Scope) -> str:
        """Write how many kernel elements reach a position; those of strided transposed dimensions depend on its remainder."""
        if not self.phased:
            return str(self.taps)
        factors = []
        for place, letter in enumerate(self.letters):
            size, stride = self.convolution.size[place], self.convolution.stride[place]
            if stride > 1:
                common, apart = self._congruence(place)
                count = f"({size - 1} - first_{letter} + {apart}) // {apart}"
                if common > 1:
                    reached = f"({self._remainders()[letter]} + {self.convolution.padding[place]}) % {common} == 0"
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
        for place in range(len(self.letters) - 1, -1, -1):
            letter, size, stride = self.letters[place], c.size[place], c.stride[place]
            strided = self.phased and stride > 1
            count = f"taps_{letter}" if strided else str(size)
            if count == "1":
                which.insert(0, "")
                loop.say(f"here_{letter} = at_{letter}")
                continue
            loop.say(f"step_{letter} = " + (rest if place == 0 else f"{rest} % {count}"))
            rest = f"{rest} // {count}"
            common, apart = self._congruence(place) if strided else (1, 1)
            which.insert(0, f"(first_{letter} + step_{letter}{f' * {apart}' if apart > 1 else ''})" if strided else f"step_{letter}")
            dilation = c.dilation[place] // common
            moved = f"step_{letter}{spread}" + (f" * {dilation}" if dilation > 1 else "")
            loop.say(f"here_{letter} = at_{letter} {'-' if c.transposed else '+'} {moved}")
        if self.phased:
            loop.say(f"tap = {self._which(which)}")

    def _which(self, parts: list[str]) -> str:
        """Write the number of a kernel element from its number along each dimension; empty where there is one."""
        text = ""
        for size, part in zip(self.convolution.size, parts, strict=True):
            text = f"{_wrapped(text)} * {size}" if text and size > 1 else text
            text = " + ".join(each for each in (text, part) if each)
        return text or "0"

    def _may_leave(self, place: int) -> bool:
        """Whether a position may look outside of the input along a dimension."""
        return self.convolution.transposed or self.convolution.padding[place] > 0

    def _product(self) -> str:
        precision = "" if self.plan.dtype != "float32" else f', input_precision="{self.parameters["precision"]}"'
        if self.parameters["accumulate"] == "chunked":
            # an addition would be folded into the product's accumulator; a multiply-add by one is not
            return f"acc = tl.fma(tl.dot(here, weights{precision}), 1.0, acc)"
        return f"acc = tl.dot(here, weights, acc{precision})"

    def _host(self) -> list[str]:
        c, source, weight, letters = self.convolution, self.source.name, self.weight.name, self.letters
        kept = (self.source, self.weight)
        lines = [f"{access.name} = {access.name}.contiguous()" for access in self.reads if access.may_need_copy and access not in kept]
        shared = f" // {self.groups}" if self.groups > 1 else ""
        lines.append(f"n_channels = {source}.shape[1]{shared}")
        if c.transposed and self.groups > 1:
            self.space.given[self.space.axis("cols").atoms] = f"({weight}.shape[1] * {self.groups})"
        lines += [f"in_{letter} = {source}.shape[{2 + place}]" for place, letter in enumerate(letters)]
        for place, letter in enumerate(letters):
            lines.append(f"out_{letter} = {self._out_size(place, letter)}")
            self.space.given[(self.space.axis("rows").atoms[place],)] = f"out_{letter}"
        for axis in self.space.axes:
            self.space.used.setdefault(axis.size_name, axis.atoms)
        known: dict[str, tuple[int, ...]] = {}
        lines += self.frame.size_lines(known)
        lines += [allocation(self.space, access, known, source) for access in self.writes]
        spatial = ", ".join(str(2 + place) for place in range(len(letters)))
        lines.append(f"{source} = {source}.permute(0, {spatial}, 1).contiguous()")
        lines.append(f"{weight} = {weight}.permute({'1' if c.transposed else '0'}, {spatial}, {'0' if c.transposed else '1'}).contiguous()")
        lines.append(f'assert {source}[0].numel() < 2**31, "offsets within an image are 32-bit"')
        p = self.parameters
        batch = "n_outer * " if self.batched else ""
        if self.phased:
            strides = zip(letters, c.stride, strict=True)
            counts = " * ".join(f"triton.cdiv(out_{letter}, {step})" if step > 1 else f"out_{letter}" for letter, step in strides)
            lines.append(f"n_places = {counts}")
            batch += f"{self.plan.n_phases} * "
        tiles = f"triton.cdiv(n_cols{shared}, {p['BLOCK_N']})" + (f" * {self.groups}" if self.groups > 1 else "")
        lines.append(f"grid = ({batch}triton.cdiv({self._places()}, {p['BLOCK_M']}) * {tiles},)")
        own = self.frame.call_arguments({name: p[name] for name in ("BLOCK_M", "BLOCK_N", "BLOCK_K")})
        count = len(self.frame.tensors())
        launch = [f"num_warps={p['num_warps']}", f"num_stages={p['num_stages']}"]
        lines += block(f"{self.name}_kernel[grid]", [*own[:count], *self.extents, *own[count:], *launch], "")
        lines.append("return " + ", ".join(access.name for access in self.writes))
        result = "torch.Tensor" if len(self.writes) == 1 else f"tuple[{', '.join(['torch.Tensor'] * len(self.writes))}]"
        arguments = [f"{access.name}: torch.Tensor" for access in self.reads]
        return [*block(f"def {self.name}", arguments, f" -> {result}:"), *("    " + line for line in lines)]

    def _out_size(self, place: int, letter: str) -> str:
        c = self.convolution
        reach, padding, stride = c.dilation[place] * (c.size[place] - 1), c.padding[place], c.stride[place]
        if c.transposed:
            added = reach + 1 + c.extra[place] - 2 * padding
            grown = f"(in_{letter} - 1) * {stride}" if stride > 1 else f"in_{letter} - 1"
            return f"{grown} {'+' if added >= 0 else '-'} {abs(added)}"
        span = 2 * padding - reach
        if stride == 1:
            return f"in_{letter}" + (f" {'+' if span > 0 else '-'} {abs(span)}" if span else "")
        return f"(in_{letter} {'+' if span > 0 else '-'} {abs(span - 1)}) // {stride} + 1"

    def _load(self, scope: Scope, expr: int) -> str:
        access = self.reads[self.body.b.exprs[expr].extra]
        return self.body.bind(scope, expr, self.frame.load_text(access))

    def _reduce(self, scope: Scope, expr: int) -> str:
        raise LoweringError("a convolution's region has no reductions")


def _wrapped(text: str) -> str:
    return f"({text})" if " " in text and not (text.startswith("(") and text.find(")") == len(text) - 1) else text
