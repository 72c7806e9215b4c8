"""The template of dense convolutions, an implicit GEMM: its left operand is gathered, position by position, from channels-last images.

One program makes a tile of positions by channels. Input and weights are brought to channels last before the kernel, where they do
not lie so, so that each step of the sum is contiguous in both. A transposed convolution with strides is several convolutions, one for
each remainder of the positions: a program takes positions of one remainder, and only the elements of the kernel that reach them.
"""

from __future__ import annotations

from tools.codegen.ir.geometry import Convolution
from tools.codegen.ir.kernel import Kernel
from tools.codegen.templates.convolution.implicit_gemm import ImplicitGemmLoop
from tools.codegen.templates.convolution.layout import OWN_NAMES, convolution_layout
from tools.codegen.templates.convolution.output_index import OutputIndex
from tools.codegen.templates.convolution.slices import SLICES, slices_of
from tools.codegen.templates.convolution.split_float import SplitConvolution
from tools.codegen.templates.shared.body import Body
from tools.codegen.templates.shared.column_folds import folded, held_lines
from tools.codegen.templates.shared.frame import Frame, RegionText, allocation, block, fitting, summary
from tools.codegen.templates.shared.knob import ROUNDED, Settings
from tools.codegen.templates.shared.naming import Names, Scope
from tools.codegen.templates.shared.placed import bases, numbers, placed_lines, whole_name
from tools.codegen.templates.shared.prepack import ARGUMENT, WEIGHTS, Pack, Pass, packed, packing_function, taken_lines
from tools.codegen.templates.shared.split_float import SPLIT_FLOATS


def emit(kernel: Kernel, name: str, parameters: Settings) -> RegionText:
    """Write the kernel and its host function."""
    assert kernel.convolution is not None
    return _Writer(kernel, kernel.convolution, name, parameters).write()


class _Writer:
    """Writes one convolution's region."""

    def __init__(self, kernel: Kernel, convolution: Convolution, name: str, parameters: Settings) -> None:
        self.name, self.parameters, self.convolution = name, parameters, convolution
        plan = convolution_layout(kernel)
        self.plan, self.letters, self.source, self.weight = plan, plan.letters, plan.source, plan.weight
        self.reads = tuple(access for access in plan.accesses if not access.is_output)
        self.writes = tuple(access for access in plan.accesses if access.is_output)
        self.space = plan.space(kernel)
        self.batched = plan.axes[0].name == "outer"
        self.groups = plan.n_groups
        split = SPLIT_FLOATS.get(str(parameters["precision"])) if plan.dtype == "float32" else None
        self.parts = SplitConvolution(convolution, plan, len(split.parts)) if split else None
        read = self.parts.read if self.parts else convolution
        self.places, self.slices = OutputIndex(read, plan), slices_of(read, plan, parameters)
        self.loop = ImplicitGemmLoop(read, plan, self.places, parameters, self.batched, split.parts if split else (), self.slices)
        self.rounds = plan.dtype == "float32" and parameters["precision"] == ROUNDED
        self.packed = packed([self._weight_pass()], parameters.get(WEIGHTS))
        self.body = Body(self.space, Names(OWN_NAMES), self._load, self._reduce)
        self.frame = Frame(self.space, f"{name}_kernel", Names(), self.reads, self.writes, self.body, {"rows": "mask_m", "cols": "mask_n"})

    def write(self) -> RegionText:
        """Write kernel and host function."""
        lines: list[str] = []
        scope = Scope(lines, "    ")
        self.loop.write(scope)
        scope = scope.nested([]) if self.slices else scope
        self.loop.unscale(scope)
        scope.names[self.convolution.expr] = "acc"
        for output, access in zip(self.space.kernel.outputs, self.writes, strict=True):
            self.frame.store(scope, access, self.body.assign(scope, output.expr))
        text = self.frame.finish([*self._head(), *lines, *self._each_slice(scope)])
        own, count = self.frame.signature(list(self._constants())), len(self.frame.tensors())
        self.extents = [name for name in self._extent_names() if name in self.frame.used]
        kernel = [
            "@triton.jit",
            *block(f"def {self.name}_kernel", [*self._read("_ptr"), *own[:count], *self._extent_parameters(), *own[count:]], ":"),
            f'    """Positions by channels a program, input channels last: {summary(self.space.kernel, self.reads, self.writes)}."""',
            *text,
        ]
        inputs = (*(access.ref for access in self.reads), *bases(self.writes).values())
        outputs, given = tuple(access.ref for access in self.writes), tuple(numbers(self.writes).values())
        pack: Pack | None = None
        if self.packed:
            pack, text = packing_function(self.name, self.name, self.packed, self.space)
            kernel += ["", "", *text]
        source = "\n".join([*kernel, "", "", *self._host()])
        helpers = (*self.body.helpers, *self.loop.helpers(packed=bool(self.packed)), *(["nearest_tf32"] if self.rounds else []))
        return RegionText(self.name, inputs, outputs, source, helpers, given, pack=pack)

    def _extent_names(self) -> list[str]:
        return [f"{kind}_{letter}" for kind in ("in", "out") for letter in self.letters] + ["n_channels"]

    def _extent_parameters(self) -> list[str]:
        """List the sizes that the kernel is given; its channels, which come with its weights, are compiled in."""
        return [f"{name}: tl.constexpr" if name == "n_channels" else name for name in self.extents]

    def _head(self) -> list[str]:
        tiles = self.slices.tiles() if self.slices else [f"tiles_m = tl.cdiv({self.places.count}, BLOCK_M)"]
        lines = ["pid = tl.program_id(0)", *tiles, *self._column_tiles()]
        self.space.monomial(self.space.axis("cols").atoms)
        if not self.places.phased:
            self.space.monomial(self.space.axis("rows").atoms)
        lines = [*self.places.counts(), *lines]
        if self.batched:
            phases = f" * {self.plan.n_phases}" if self.places.phased else ""
            lines += [f"batch = (pid // (tiles_m * tiles_n{phases})).to(tl.int64)"]
        if self.places.phased:
            # positions of all remainders lie in one another's sectors: they are written one after the other
            lines += [f"phase = pid % {self.plan.n_phases}", f"tile = pid // {self.plan.n_phases} % (tiles_m * tiles_n)"]
        else:
            lines += ["tile = pid % (tiles_m * tiles_n)"]
        if self.slices:
            lines += ["place = tile // tiles_n % tiles_p * BLOCK_M + tl.arange(0, BLOCK_M)[:, None]", *self.slices.positions()]
        else:
            place = "place" if self.places.phased else "off_m"
            lines += [f"{place} = tile // tiles_n * BLOCK_M + tl.arange(0, BLOCK_M)[:, None]", *self.places.write()]
            lines += self.space.parts(self.space.axis("rows"))
        return ["    " + line for line in [*lines, *self._columns()]]

    def _each_slice(self, finish: Scope) -> list[str]:
        """Write that sums are finished slice by slice; nothing where there is one sum."""
        if not self.slices:
            return []
        head = [*self.slices.each(), *self.space.parts(self.space.axis("rows"))]
        return [*(f"    {line}" for line in self.slices.walk()), *(finish.indent + line for line in head), *finish.lines]

    def _constants(self) -> dict[str, int]:
        """List what is compiled in."""
        names = ("BLOCK_M", "BLOCK_N", "BLOCK_K", *((SLICES,) if self.slices else ()))
        return {name: int(self.parameters[name]) for name in names}

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

    def _host(self) -> list[str]:
        c, source, weight, letters = self.convolution, self.source.name, self.weight.name, self.letters
        kept = (self.source, self.weight)
        lines = [f"{access.name} = {access.name}.contiguous()" for access in self.reads if access.may_need_copy and access not in kept]
        shared = f" // {self.groups}" if self.groups > 1 else ""
        if not self.parts:
            lines.append(f"n_channels = {source}.shape[1]{shared}")
        if c.transposed and self.groups > 1:
            self.space.given[self.space.axis("cols").atoms] = f"({weight}.shape[1] * {self.groups})"
        lines += [f"in_{letter} = {source}.shape[{2 + place}]" for place, letter in enumerate(letters)]
        for place, letter in enumerate(letters):
            lines.append(f"out_{letter} = {self._out_size(place, letter)}")
            self.space.given[(self.space.axis("rows").atoms[place],)] = f"out_{letter}"
        lines += fitting([f"out_{letter}" for place, letter in enumerate(letters) if not self._always_fits(place)])
        for axis in self.space.axes:
            self.space.used.setdefault(axis.size_name, axis.atoms)
        known: dict[str, tuple[int, ...]] = {}
        lines += self.frame.size_lines(known)
        lines += held_lines(self.plan.folds, int(self.parameters["BLOCK_N"]))
        for access in self.writes:
            lines += placed_lines(self.space, access, known, source) or [allocation(self.space, access, known, source)]
        spatial = ", ".join(str(2 + place) for place in range(len(letters)))
        lines += taken_lines(self.packed)
        lines += self._channels_last(source, weight, spatial)
        p = self.parameters
        batch = "n_outer * " if self.batched else ""
        if self.places.phased:
            strides = zip(letters, c.stride, strict=True)
            counts = " * ".join(f"triton.cdiv(out_{letter}, {step})" if step > 1 else f"out_{letter}" for letter, step in strides)
            lines.append(f"n_places = {counts}")
            batch += f"{self.plan.n_phases} * "
        tiles = f"triton.cdiv(n_cols{shared}, {p['BLOCK_N']})" + (f" * {self.groups}" if self.groups > 1 else "")
        rows = self.slices.tile_count(p) if self.slices else f"triton.cdiv({self.places.count}, {p['BLOCK_M']})"
        lines.append(f"grid = ({batch}{rows} * {tiles},)")
        own = self.frame.call_arguments(self._constants())
        count = len(self.frame.tensors())
        launch = [f"num_warps={p['num_warps']}", f"num_stages={p['num_stages']}"]
        lines += block(f"{self.name}_kernel[grid]", [*self._read(), *own[:count], *self.extents, *own[count:], *launch], "")
        lines.append("return " + ", ".join(whole_name(access) for access in self.writes))
        result = "torch.Tensor" if len(self.writes) == 1 else f"tuple[{', '.join(['torch.Tensor'] * len(self.writes))}]"
        arguments = [f"{access.name}: torch.Tensor" for access in self.reads]
        arguments += [f"{name}: torch.Tensor" for name in bases(self.writes)] + [f"{name}: int" for name in numbers(self.writes)]
        arguments += [f"{ARGUMENT}: list[torch.Tensor]"] if self.packed else []
        return [*block(f"def {self.name}", arguments, f" -> {result}:"), *("    " + line for line in lines)]

    def _channels_last(self, source: str, weight: str, spatial: str) -> list[str]:
        """Write how input and weights are brought to channels last, as the parts that the kernel reads where there are any."""
        if self.parts:
            return self.parts.host(source, weight, self.loop.sources(source), self.loop.sources(weight), packed=bool(self.packed))
        return [
            f"{source} = {source}.permute(0, {spatial}, 1).contiguous()",
            *([] if self.packed else [self._weight_pass().line]),
            f'assert {source}[0].numel() < 2**31, "offsets within an image are 32-bit"',
        ]

    def _weight_pass(self) -> Pass:
        """Write how weights are brought to the form in which the kernel reads them."""
        weight, turned = self.weight.name, self.convolution.transposed
        if self.parts:
            return self.parts.packing(self.weight, self.loop.sources(weight))
        spatial = ", ".join(str(2 + place) for place in range(len(self.letters)))
        order = f"{'1' if turned else '0'}, {spatial}, {'0' if turned else '1'}"
        turned_weight = f"{weight}.permute({order})"
        written = f"to_tf32({turned_weight})" if self.rounds else f"{turned_weight}.contiguous()"
        return Pass(self.weight, f"{weight} = {written}", (weight,))

    def _read(self, end: str = "") -> list[str]:
        """List what stands in the place of input and weights: the frame knows only tensors that are read as they are."""
        return [f"{name}{end}" for each in (self.source, self.weight) for name in self.loop.sources(each.name)] if self.parts else []

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

    def _always_fits(self, place: int) -> bool:
        """Whether an input of one element has a result."""
        c = self.convolution
        reach, padded = c.dilation[place] * (c.size[place] - 1), 2 * c.padding[place]
        return reach + c.extra[place] >= padded if c.transposed else padded >= reach

    def _load(self, scope: Scope, expr: int) -> str:
        access = self.reads[self.body.b.exprs[expr].extra]
        return self.body.bind(scope, expr, self.frame.load_text(access))

    def _reduce(self, scope: Scope, expr: int) -> str:
        return folded(self.body, scope, expr)
