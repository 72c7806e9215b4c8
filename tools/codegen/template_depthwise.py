"""The template of depthwise convolution and its transpose: a tile gathered step by step, and what follows pointwise.

The tile is of one channel's plane; in one dimension it is of several channels' lines, in three of one plane of a channel's volume. Each
element is multiplied and added in float32 on the ordinary cores: a depthwise convolution is bound by memory, and neighbouring lanes
find each other's elements in the cache.
"""

from __future__ import annotations

import math

from tools.codegen.body import Body
from tools.codegen.expressions import LoweringError
from tools.codegen.frame import Frame, Parameters, RegionText, allocation, block, conversion, guard, summary
from tools.codegen.kernel import Kernel
from tools.codegen.naming import Names, Scope, access_names
from tools.codegen.sliding import Depthwise
from tools.codegen.spaces import Access, Axis, Space, accesses_of

NAME = "depthwise"
_TILES = {1: "lines of several channels", 2: "one channel", 3: "one plane of a channel"}
UNROLLED = 49
"""Elements of a kernel up to which its loops are unrolled."""
OWN_NAMES = (
    "above", "at_d", "at_h", "at_w", "base", "here", "image", "in_c", "in_d", "in_h", "in_w", "inside", "off_d", "off_h", "out_d",
    "from_d", "from_h", "from_w", "out_h", "out_w", "plane", "step_d", "step_h", "step_w", "tap",
)  # fmt: skip


def depthwise_layout(kernel: Kernel) -> tuple[tuple[Access, ...], tuple[Axis, ...]]:
    """Check the region and make its axes: planes (batch, channel, depth of a volume), rows, columns; lines are rows themselves."""
    depthwise = kernel.depthwise
    if depthwise is None:
        raise LoweringError("there is no depthwise convolution")
    refs = [load.ref for load in kernel.builder.loads] + [output.ref for output in kernel.outputs]
    accesses = accesses_of(kernel, access_names(refs, Names(OWN_NAMES)))
    batch, channel, *spatial = (kernel.builder.atoms.leaves(dim) for dim in depthwise.dims)
    order = (*batch, *channel, *(atom for dim in spatial for atom in dim))
    own = (depthwise.source, depthwise.weight)
    others = [access for place, access in enumerate(accesses) if place not in own]
    if any(access.is_output and set(access.strides) != set(order) for access in others) or any(
        not set(access.strides) <= set(order) for access in others
    ):
        raise LoweringError("a tensor of the convolution's region differs in shape from its result")
    if any(len(dim) != 1 for dim in (channel, *spatial)) or len(batch) > 1:
        raise LoweringError("the result of the convolution is cut into parts")
    planes = ((batch, channel) if batch else (channel,)) + tuple(spatial[:-2])
    outer = tuple(atom for group in planes for atom in group)
    cols = Axis("cols", "off_n", spatial[-1], (spatial[-1],))
    if len(spatial) == 1:
        return accesses, (Axis("rows", "plane", outer, planes), cols)
    return accesses, (Axis("outer", "plane", outer, planes), Axis("rows", "off_h", spatial[-2], (spatial[-2],)), cols)


def emit(kernel: Kernel, name: str, parameters: Parameters) -> RegionText:
    """Write the kernel and its host function."""
    assert kernel.depthwise is not None
    return _Writer(kernel, kernel.depthwise, name, parameters).write()


class _Writer:
    """Writes one depthwise region."""

    def __init__(self, kernel: Kernel, depthwise: Depthwise, name: str, parameters: Parameters) -> None:
        self.name, self.parameters, self.depthwise = name, parameters, depthwise
        accesses, axes = depthwise_layout(kernel)
        self.rank = len(depthwise.size)
        self.letters = "dhw"[-self.rank :]
        self.source, self.weight = accesses[depthwise.source], accesses[depthwise.weight]
        self.reads = tuple(access for access in accesses if not access.is_output)
        self.writes = tuple(access for access in accesses if access.is_output)
        self.space = Space(kernel, axes, accesses)
        self.body = Body(self.space, Names(OWN_NAMES), self._load, self._reduce)
        masks = {"rows": "mask_m", "cols": "mask_n"}
        self.frame = Frame(self.space, f"{name}_kernel", Names(), self.reads, self.writes, self.body, masks)

    def write(self) -> RegionText:
        """Write kernel and host function."""
        lines: list[str] = []
        scope = Scope(lines, "    ")
        self._gather(scope)
        scope.names[self.depthwise.expr] = "acc"
        for output, access in zip(self.space.kernel.outputs, self.writes, strict=True):
            self.frame.store(scope, access, self.body.assign(scope, output.expr))
        text = self.frame.finish([*self._head(), *lines])
        constants = ["BLOCK_M", "BLOCK_N"]
        own, count = self.frame.signature(constants), len(self.frame.tensors())
        kernel = [
            "@triton.jit",
            *block(f"def {self.name}_kernel", [*own[:count], *self._sizes(), *own[count:]], ":"),
            f'    """A tile of {_TILES[self.rank]} a program: {summary(self.space.kernel, self.reads, self.writes)}."""',
            *text,
        ]
        inputs, outputs = tuple(access.ref for access in self.reads), tuple(access.ref for access in self.writes)
        return RegionText(self.name, inputs, outputs, "\n".join([*kernel, "", "", *self._host()]), tuple(self.body.helpers))

    @property
    def _plane(self) -> Axis:
        """The axis of batch and channel."""
        return self.space.axes[0]

    def _sizes(self) -> list[str]:
        """List the sizes of the input that the kernel takes."""
        return [name for name in ("in_c", *(f"in_{letter}" for letter in self.letters)) if name in self.frame.used]

    def _head(self) -> list[str]:
        self.space.parts_used.add(self._plane.name)
        wide = ".to(tl.int64)" if self.space.is_wide() else ""
        lines = ["pid = tl.program_id(0)", "tiles_n = tl.cdiv(n_cols, BLOCK_N)"]
        if self.rank == 1:
            lines += [
                f"plane = (pid // tiles_n){wide} * BLOCK_M + tl.arange(0, BLOCK_M)[:, None]",
                "mask_m = plane < n_rows",
                *self.space.parts(self._plane),
                "off_n = pid % tiles_n * BLOCK_N + tl.arange(0, BLOCK_N)[None, :]",
            ]
        else:
            lines += [
                "tiles_m = tl.cdiv(n_rows, BLOCK_M)",
                f"plane = (pid // (tiles_m * tiles_n)){wide}",
                *self.space.parts(self._plane),
                "tile = pid % (tiles_m * tiles_n)",
                "off_h = tile // tiles_n * BLOCK_M + tl.arange(0, BLOCK_M)[:, None]",
                "mask_m = off_h < n_rows",
                "off_n = tile % tiles_n * BLOCK_N + tl.arange(0, BLOCK_N)[None, :]",
            ]
        lines.append("mask_n = off_n < n_cols")
        for name in ("rows", "cols"):
            self.space.monomial(self.space.axis(name).atoms)
        return ["    " + line for line in lines]

    def _channel(self) -> str:
        """Name the channel of the result."""
        return self._plane.part(len(self._plane.groups) - 1 - (self.rank == 3))

    def _image(self) -> str:
        """Write which image of the input, counted over batch and channels, a program looks at."""
        several = len(self._plane.groups) - (self.rank == 3) > 1
        if self.depthwise.multiplier == 1 and self.rank < 3:
            return "plane"
        channel = self._channel() + (f" // {self.depthwise.multiplier}" if self.depthwise.multiplier > 1 else "")
        return f"({self._plane.part(0)} * in_c + {channel})" if several else f"({channel})"

    def _gather(self, scope: Scope) -> None:
        """Write the loops over the kernel's elements."""
        d, letters = self.depthwise, self.letters
        count = math.prod(d.size)
        walk = "tl.static_range" if count <= UNROLLED else "range"
        extent = " * ".join(f"in_{letter}" for letter in letters)
        scope.say(f"base = {self.source.name}_ptr + {self._image()} * {extent if self.rank == 1 else f'({extent})'}")
        scope.say(f"above = {self.weight.name}_ptr + {self._channel()} * {count}")
        scope.say("acc = tl.zeros([BLOCK_M, BLOCK_N], tl.float32)")
        tests, there, step = ["mask_m", "mask_n"], "", ""
        for place, letter in enumerate(letters):
            scope.say(f"for step_{letter} in {walk}({d.size[place]}):")
            scope = scope.nested()
            tests += self._position(scope, place, letter)
            there = f"at_{letter}" if not there else f"({there} * in_{letter} + at_{letter})"
            step = f"step_{letter}" if not step else f"({step} * {d.size[place]} + step_{letter})"
        scope.say(f"inside = {' & '.join(tests)}")
        to_float = conversion(self.source.meta.dtype)
        scope.say(f"here = tl.load(base + {_bare(there)}, mask=inside, other=0.0){to_float}")
        mask = ", mask=mask_m, other=0.0" if self.rank == 1 else ""
        scope.say(f"tap = tl.load(above + {_bare(step)}{mask}){conversion(self.weight.meta.dtype)}")
        scope.say("acc = tl.fma(here, tap, acc)")

    def _position(self, scope: Scope, place: int, letter: str) -> list[str]:
        """Write where one step lies in the input along a dimension, and return what tells whether that is inside."""
        d = self.depthwise
        offset = {"d": self._plane.part(len(self._plane.groups) - 1), "h": "off_h", "w": "off_n"}[letter]
        stride, dilation, padding = d.stride[place], d.dilation[place], d.padding[place]
        # as a block: Triton's interpreter makes a number of a block's mask and a single truth value
        block_ = "tl.zeros([1, 1], tl.int32) + " if letter == "d" else ""
        spread = f"step_{letter}" + (f" * {dilation}" if dilation != 1 else "")
        if not d.transposed:
            text = offset + (f" * {stride}" if stride != 1 else "") + f" + {spread}" + (f" - {padding}" if padding else "")
            scope.say(f"at_{letter} = {block_}{text}")
            return [f"(at_{letter} >= 0)", f"(at_{letter} < in_{letter})"] if padding else []
        text = f"{block_}{offset}{f' + {padding}' if padding else ''} - {spread}"
        if stride == 1:
            scope.say(f"at_{letter} = {text}")
            return [f"(at_{letter} >= 0)", f"(at_{letter} < in_{letter})"]
        scope.say(f"from_{letter} = {text}")
        scope.say(f"at_{letter} = from_{letter} // {stride}")
        return [f"(from_{letter} >= 0)", f"(from_{letter} % {stride} == 0)", f"(at_{letter} < in_{letter})"]

    def _host(self) -> list[str]:
        d, source = self.depthwise, self.source.name
        own = (self.source, self.weight)
        lines = [f"{a.name} = {a.name}.contiguous()" for a in self.reads if a.may_need_copy or (a in own and not a.meta.contiguous)]
        lines += [f"in_c = {source}.shape[1]"] if "in_c" in self._sizes() else []
        names = [f"in_{letter}" for letter in self.letters]
        lines += [f"{', '.join(names)} = {source}.shape[-{self.rank}:]" if self.rank > 1 else f"in_w = {source}.shape[-1]"]
        for place, letter in enumerate(self.letters):
            lines.append(f"out_{letter} = {_length(d, place, f'in_{letter}')}")
            self.space.given[self.space.kernel.builder.atoms.leaves(d.dims[2 + place])] = f"out_{letter}"
        if d.multiplier > 1:
            self.space.given[self.space.kernel.builder.atoms.leaves(d.dims[1])] = f"{source}.shape[1] * {d.multiplier}"
        for axis_ in self.space.axes:
            self.space.used.setdefault(axis_.size_name, axis_.atoms)
        known: dict[str, tuple[int, ...]] = {}
        lines += self.frame.size_lines(known)
        lines += [allocation(self.space, access, known, source) for access in self.writes]
        lines += guard(self.space, (self.source, *self.writes))
        p = self.parameters
        outer = "n_outer * " if self.rank > 1 else ""
        lines.append(f"grid = ({outer}triton.cdiv(n_rows, {p['BLOCK_M']}) * triton.cdiv(n_cols, {p['BLOCK_N']}),)")
        given = self.frame.call_arguments({"BLOCK_M": p["BLOCK_M"], "BLOCK_N": p["BLOCK_N"]})
        count = len(self.frame.tensors())
        lines += block(f"{self.name}_kernel[grid]", [*given[:count], *self._sizes(), *given[count:], f"num_warps={p['num_warps']}"], "")
        lines.append("return " + ", ".join(access.name for access in self.writes))
        result = "torch.Tensor" if len(self.writes) == 1 else f"tuple[{', '.join(['torch.Tensor'] * len(self.writes))}]"
        arguments = [f"{access.name}: torch.Tensor" for access in self.reads]
        return [*block(f"def {self.name}", arguments, f" -> {result}:"), *("    " + line for line in lines)]

    def _load(self, scope: Scope, expr: int) -> str:
        access = self.reads[self.body.b.exprs[expr].extra]
        return self.body.bind(scope, expr, self.frame.load_text(access))

    def _reduce(self, scope: Scope, expr: int) -> str:
        raise LoweringError("a convolution's region has no reductions")


def _length(d: Depthwise, place: int, extent: str) -> str:
    """Write how many elements the result has along a dimension."""
    stride, span = d.stride[place], d.dilation[place] * (d.size[place] - 1) + 1 - 2 * d.padding[place]
    if d.transposed:
        return _sum(f"({extent} - 1) * {stride}" if stride != 1 else extent, span + d.extra[place] - (stride == 1))
    return f"({_sum(extent, -span)}) // {stride} + 1" if stride != 1 else _sum(extent, 1 - span)


def _sum(text: str, number: int) -> str:
    return f"{text} {'+' if number > 0 else '-'} {abs(number)}" if number else text


def _bare(text: str) -> str:
    """Leave out a sum's outermost parentheses."""
    return text[1:-1] if text.startswith("(") else text
