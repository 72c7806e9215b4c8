"""The template of depthwise convolution and its transpose: a lane makes some rows of one column, and what follows pointwise.

Lanes that are neighbours make columns that are neighbours, so that they ask for neighbouring elements; each lane goes down some rows of the
result. It walks down the input and reads each of its rows once (`layout.walks`), or gathers each result by itself: of lines, large kernels
and transposes with a stride. Lines of a length that Triton sees aligned are made by fours (`quads`). A program's lanes are of one plane; in
one dimension they are of several channels' lines, in three of one plane of a channel's volume. With a stride of 2 along the row, a lane
reads pairs where one load can bring both.
Each element is multiplied and added in float32 on the ordinary cores.
"""

from __future__ import annotations

from tools.codegen.ir.expr import LoweringError
from tools.codegen.ir.geometry import Depthwise
from tools.codegen.ir.kernel import Kernel
from tools.codegen.templates.depthwise.layout import OWN_NAMES, PAIRED, depthwise_layout, reach, rows_a_lane, sum_text, walks
from tools.codegen.templates.depthwise.loop import DepthwiseLoop
from tools.codegen.templates.depthwise.quads import OWN, by_quads
from tools.codegen.templates.shared.body import Body
from tools.codegen.templates.shared.frame import Frame, RegionText, allocation, block, fitting, guard, summary
from tools.codegen.templates.shared.iteration_space import Axis, Space
from tools.codegen.templates.shared.knob import Settings
from tools.codegen.templates.shared.naming import Names, Scope

_LANES = {1: "lines of several channels", 2: "one channel", 3: "one plane of a channel"}


def emit(kernel: Kernel, name: str, parameters: Settings) -> RegionText:
    """Write the kernel and its host function."""
    assert kernel.depthwise is not None
    return _Writer(kernel, kernel.depthwise, name, parameters).write()


class _Writer:
    """Writes one depthwise region."""

    def __init__(self, kernel: Kernel, depthwise: Depthwise, name: str, parameters: Settings) -> None:
        self.name, self.parameters, self.depthwise = name, parameters, depthwise
        accesses, axes = depthwise_layout(kernel)
        self.rank = len(depthwise.size)
        self.letters = "dhw"[-self.rank :]
        self.source, self.weight = accesses[depthwise.source], accesses[depthwise.weight]
        self.reads = tuple(access for access in accesses if not access.is_output)
        self.writes = tuple(access for access in accesses if access.is_output)
        self.own = OWN if by_quads(kernel) else 1
        self.space = Space(kernel, axes, accesses)
        self.space.parts_used.add(self._plane.name)
        self.body = Body(self.space, Names(OWN_NAMES), self._load, self._reduce)
        masks = {"rows": "mask_m", "cols": "mask_n"}
        self.frame = Frame(self.space, f"{name}_kernel", Names(), self.reads, self.writes, self.body, masks)

    def write(self) -> RegionText:
        """Write kernel and host function."""
        lines: list[str] = []
        scope = Scope(lines, "    ")
        self._before(scope)
        loop = DepthwiseLoop(self.depthwise, self.source, self.weight, self._image(), self._channel(), self._depth())
        if walks(self.depthwise):
            loop.walk(scope)
        elif self.own > 1:
            scope.say("done = ()")
            loop.quads(self._row(scope), self._lanes)
        else:
            scope.say("done = ()")
            loop.gather(self._row(scope))
        each = self._row(scope)
        each.say("acc = done[row]")
        self._store(each)
        text = self.frame.finish([*self._head(), *lines])
        constants = ["BLOCK_M", "BLOCK_N", "ROWS", "PAIRS"]
        own, count = self.frame.signature(constants), len(self.frame.tensors())
        kernel = [
            "@triton.jit",
            *block(f"def {self.name}_kernel", [*own[:count], *self._sizes(), *own[count:]], ":"),
            f'    """Columns of {_LANES[self.rank]} a program: {summary(self.space.kernel, self.reads, self.writes)}."""',
            *text,
        ]
        inputs, outputs = tuple(access.ref for access in self.reads), tuple(access.ref for access in self.writes)
        return RegionText(self.name, inputs, outputs, "\n".join([*kernel, "", "", *self._host()]), tuple(self.body.helpers))

    @property
    def _lanes(self) -> str:
        """Write how many lanes a program has."""
        return f"BLOCK_M // ROWS * {f'(BLOCK_N // {OWN})' if self.own > 1 else 'BLOCK_N'}"

    def _store(self, scope: Scope) -> None:
        """Write what follows the sum of one row, and the stores."""
        scope.names[self.depthwise.expr] = "acc"
        for output, access in zip(self.space.kernel.outputs, self.writes, strict=True):
            self.frame.store(scope, access, self.body.assign(scope, output.expr))

    @property
    def _plane(self) -> Axis:
        """The axis of batch and channel."""
        return self.space.axes[0]

    def _sizes(self) -> list[str]:
        """List the sizes of the input that the kernel takes."""
        return [name for name in ("in_c", *(f"in_{letter}" for letter in self.letters)) if name in self.frame.used]

    def _head(self) -> list[str]:
        wide = ".to(tl.int64)" if self.space.is_wide() else ""
        lines = ["pid = tl.program_id(0)", "tiles_n = tl.cdiv(n_cols, BLOCK_N)", f"lane = tl.arange(0, {self._lanes})"]
        lines[-1] += "[:, None]" if self.own > 1 else ""
        tile = "pid"
        if self.rank > 1:
            plane = "pid // (tiles_m * tiles_n)"
            lines += ["tiles_m = tl.cdiv(n_rows, BLOCK_M)", f"plane = {f'({plane}){wide}' if wide else plane}"]
            lines += [*self.space.parts(self._plane), "tile = pid % (tiles_m * tiles_n)"]
            tile, wide = "tile", ""
        across = f"(BLOCK_N // {OWN})" if self.own > 1 else "BLOCK_N"
        own = f" * {OWN} + tl.arange(0, {OWN})[None, :]" if self.own > 1 else ""
        lines += [
            f"first = {f'({tile} // tiles_n){wide}' if wide else f'{tile} // tiles_n'} * BLOCK_M + lane // {across} * ROWS",
            f"off_n = {tile} % tiles_n * BLOCK_N + lane % {across}{own}",
            "mask_n = off_n < n_cols",
        ]
        for name in ("rows", "cols"):
            self.space.monomial(self.space.axis(name).atoms)
        return ["    " + line for line in lines]

    def _before(self, scope: Scope) -> None:
        """Load what is the same for all rows of a lane, such as a channel's bias, once."""
        rows, own = set(self.space.axis("rows").atoms), (self.depthwise.source, self.depthwise.weight)
        for place, expr in enumerate(self.body.b.exprs):
            if expr.op == "load" and expr.extra not in own and not set(self.reads[expr.extra].strides) & rows:
                self.body.assign(scope, place)

    def _row(self, scope: Scope) -> Scope:
        """Write a loop over a lane's rows: it loads for all before it stores any, since a load does not pass a store."""
        scope.say("for row in tl.static_range(ROWS):")
        each = scope.nested()
        index = self.space.axis("rows").index
        for line in (f"{index} = first + row", f"mask_m = {index} < n_rows", *(self.space.parts(self._plane) if self.rank == 1 else [])):
            each.say(line)
        return each

    def _depth(self) -> str:
        """Name the place in the depth of a volume."""
        return self._plane.part(len(self._plane.groups) - 1) if self.rank == 3 else ""

    def _channel(self) -> str:
        """Name the channel of the result; nothing where there is one alone."""
        if not self.depthwise.dims[1]:
            return ""
        return self._plane.part(len(self._plane.groups) - 1 - (self.rank == 3))

    def _image(self) -> str:
        """Write which image of the input, counted over batch and channels, a program looks at."""
        if not self.depthwise.dims[1]:
            return self._plane.part(0)
        several = len(self._plane.groups) - (self.rank == 3) > 1
        if self.depthwise.multiplier == 1 and self.rank < 3:
            return "plane"
        channel = self._channel() + (f" // {self.depthwise.multiplier}" if self.depthwise.multiplier > 1 else "")
        return f"({self._plane.part(0)} * in_c + {channel})" if several else f"({channel})"

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
        lines += fitting([f"out_{letter}" for place, letter in enumerate(self.letters) if not _always_fits(d, place)])
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
        constants = {"BLOCK_M": p["BLOCK_M"], "BLOCK_N": p["BLOCK_N"], "ROWS": rows_a_lane(p, self.own), "PAIRS": f"in_w % {PAIRED} == 0"}
        given = self.frame.call_arguments(constants)
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
    stride, span = d.stride[place], reach(d, place) - 2 * d.padding[place]
    if d.transposed:
        return sum_text(f"({extent} - 1) * {stride}" if stride != 1 else extent, span + d.extra[place] - (stride == 1))
    return f"({sum_text(extent, -span)}) // {stride} + 1" if stride != 1 else sum_text(extent, 1 - span)


def _always_fits(d: Depthwise, place: int) -> bool:
    """Whether an input of one element has a result."""
    span = reach(d, place) - 2 * d.padding[place]
    return span + d.extra[place] > 0 if d.transposed else span <= 1
