"""The template of pooling: one element of the result a lane, its window gathered step by step, then the pointwise operators after it.

`flat` numbers the elements of the result one by one and takes each number apart; `tile` gives a program a tile of the
result's last two dimensions, so that only the program's own number is taken apart.
"""

from __future__ import annotations

from tools.codegen.body import Body
from tools.codegen.expressions import LoweringError
from tools.codegen.frame import Frame, Parameters, RegionText, allocation, block, conversion, guard, summary
from tools.codegen.lowering import Kernel, Window
from tools.codegen.naming import Names, Scope, access_names
from tools.codegen.sizes import power_of_two, product
from tools.codegen.spaces import Access, Axis, Space, Stride, accesses_of, coalesce

NAME = "window"
UNROLLED = 16
"""Window elements up to which the loops are unrolled: more would bloat the code without more loads in flight."""
LETTERS = "dhw"
SMALLEST_PLANE = 512
"""Elements of the result's last two dimensions below which a tile would be mostly idle."""


def window_layout(kernel: Kernel) -> tuple[tuple[Access, ...], Axis]:
    """Check the region and order its elements along one axis: outer dimensions, then each spatial dimension by itself."""
    window = kernel.window
    if window is None:
        raise LoweringError("there is no window")
    refs = [load.ref for load in kernel.builder.loads] + [output.ref for output in kernel.outputs]
    accesses = accesses_of(kernel, access_names(refs, Names()))
    outputs = [access for access in accesses if access.is_output]
    order = tuple(atom for dim in outputs[0].dims for atom in dim)
    others = tuple(access for place, access in enumerate(accesses) if place != window.place)
    if any(set(access.strides) != set(order) for access in outputs) or any(not set(a.strides) <= set(order) for a in others):
        raise LoweringError("a tensor of the window's region differs in shape from its result")
    spatial = kernel.builder.atoms.leaves(window.spatial)
    if order[-len(spatial) :] != spatial:
        raise LoweringError("the result of the window is permuted")
    apart: dict[int, Stride] = {atom: (f"apart{place}:0",) for place, atom in enumerate(spatial)}
    marker = Access(outputs[0].ref, "", outputs[0].meta, outputs[0].dims, apart)
    return accesses, Axis("elements", "offs", order, coalesce(order, (*others, marker)))


def fits_tile(kernel: Kernel) -> bool:
    """Whether a tile that is a power of two wide has few idle lanes over the result's last two dimensions."""
    _, axis = window_layout(kernel)
    sizes = [product((kernel.builder.atoms.size(atom) for atom in group), kernel.builder.atoms.traces)[0] for group in axis.groups]
    width = sizes[-1]
    return len(sizes) > 1 and 4 * width >= 3 * power_of_two(width) and width * sizes[-2] >= SMALLEST_PLANE


def emit(kernel: Kernel, name: str, parameters: Parameters) -> RegionText:
    """Write the kernel and its host function."""
    return _Writer(kernel, name, parameters).write()


def _tile_axes(axis: Axis) -> tuple[Axis, ...]:
    """Take the last two dimensions as a tile's rows and columns, and everything before them as one number a program."""
    *before, rows, cols = axis.groups
    tile = (Axis("rows", "rows", rows, (rows,)), Axis("cols", "cols", cols, (cols,)))
    outer = tuple(atom for group in before for atom in group)
    return (Axis("outer", "outer", outer, tuple(before)), *tile) if outer else tile


class _Writer:
    """Writes one pooling region."""

    def __init__(self, kernel: Kernel, name: str, parameters: Parameters) -> None:
        self.name, self.parameters = name, parameters
        assert kernel.window is not None
        self.window: Window = kernel.window
        accesses, axis = window_layout(kernel)
        self.tile = parameters.get("algorithm", "flat") == "tile" and len(axis.groups) > 1
        axes: tuple[Axis, ...] = (axis,)
        masks, self.shape = {"elements": "mask"}, "[BLOCK]"
        if self.tile:
            axes, self.shape = _tile_axes(axis), "[BLOCK_M, BLOCK_N]"
            masks = {"rows": "mask_m", "cols": "mask_n"}
        self.source = accesses[self.window.place]
        self.reads = tuple(access for access in accesses if not access.is_output)
        self.writes = tuple(access for access in accesses if access.is_output)
        self.letters = LETTERS[-len(self.window.size) :]
        self.space = Space(kernel, axes, accesses)
        self.places = [(each, place) for each in axes for place in range(len(each.groups))]
        own = [f"{kind}_{letter}" for letter in self.letters for kind in ("in", "out", "step", "at", "off")]
        self.body = Body(self.space, Names([*own, "inside", "base"]), self._load, self._reduce)
        self.frame = Frame(self.space, f"{name}_kernel", Names(), self.reads, self.writes, self.body, masks)

    def write(self) -> RegionText:
        """Write kernel and host function."""
        tail = Scope([], "    ")
        tail.names[self.window.expr] = "acc"
        for output, access in zip(self.space.kernel.outputs, self.writes, strict=True):
            self.frame.store(tail, access, self.body.assign(tail, output.expr))
        head = self._tile_head() if self.tile else self._flat_head()
        text = self.frame.finish([*("    " + line for line in [*head, *self._gather()]), *tail.lines])
        extents = [f"in_{letter}" for letter in self.letters if f"in_{letter}" in self.frame.used]
        own = self.frame.signature(["BLOCK_M", "BLOCK_N", "BLOCK"])
        count = len(self.frame.tensors())
        kernel = [
            "@triton.jit",
            *block(f"def {self.name}_kernel", [*own[:count], *extents, *own[count:]], ":"),
            f'    """One element a lane: {summary(self.space.kernel, self.reads, self.writes)}."""',
            *text,
        ]
        inputs, outputs = tuple(access.ref for access in self.reads), tuple(access.ref for access in self.writes)
        source = "\n".join([*kernel, "", "", *self._host(extents)])
        return RegionText(self.name, inputs, outputs, source, tuple(self.body.helpers))

    def _flat_head(self) -> list[str]:
        axis = self.space.axes[0]
        size = self.space.monomial(axis.atoms)
        wide = ".to(tl.int64)" if self.space.is_wide() else ""
        self.space.parts_used.add(axis.name)
        head = [f"offs = tl.program_id(0){wide} * BLOCK + tl.arange(0, BLOCK)", f"mask = offs < {size}"]
        return head + self.space.parts(axis)

    def _tile_head(self) -> list[str]:
        *outer, rows, cols = self.space.axes
        wide = ".to(tl.int64)" if self.space.is_wide() else ""
        lines = ["pid = tl.program_id(0)", f"tiles_n = tl.cdiv({self.space.monomial(cols.atoms)}, BLOCK_N)"]
        tile = "pid // tiles_n"
        if outer:
            self.space.parts_used.add("outer")
            lines += [f"tiles_m = tl.cdiv({self.space.monomial(rows.atoms)}, BLOCK_M)"]
            lines += [f"outer = {f'(pid // (tiles_m * tiles_n)){wide}' if wide else 'pid // (tiles_m * tiles_n)'}"]
            lines += self.space.parts(outer[0])
            tile = "pid // tiles_n % tiles_m"
        return [
            *lines,
            f"rows = ({tile}){wide} * BLOCK_M + tl.arange(0, BLOCK_M)[:, None]",
            f"mask_m = rows < {self.space.monomial(rows.atoms)}",
            *self.space.parts(rows),
            "cols = pid % tiles_n * BLOCK_N + tl.arange(0, BLOCK_N)[None, :]",
            f"mask_n = cols < {self.space.monomial(cols.atoms)}",
        ]

    def _gather(self) -> list[str]:
        """Write the loops over the window."""
        rank, window = len(self.letters), self.window
        outer = len(self.places) - rank
        lead = ""
        for axis, place in self.places[:outer]:
            above = f"({lead})" if " " in lead else lead
            lead = axis.part(place) if not lead else f"{above} * {axis.group_name(place)} + {axis.part(place)}"
        extent = " * ".join(f"in_{letter}" for letter in self.letters)
        start = '-float("inf")' if window.kind == "max" else "0.0"
        lead, extent = (f"({text})" if " " in text else text for text in (lead, extent))
        first = f" + {lead} * {extent}" if lead else ""
        lines = [f"base = {self.source.name}_ptr{first}", f"acc = tl.full({self.shape}, {start}, tl.float32)"]
        counted = window.kind == "mean" and any(window.padding) and not window.count_padding
        lines += [f"count = tl.zeros({self.shape}, tl.float32)"] if counted else []
        total, indent, tests = 1, "", ["mask_m & mask_n"] if self.tile else ["mask"]
        for size in window.size:
            total *= size
        walk = "tl.static_range" if total <= UNROLLED else "range"
        for place, letter in enumerate(self.letters):
            size, stride = window.size[place], window.stride[place]
            padding, dilation = window.padding[place], window.dilation[place]
            lines.append(f"{indent}for step_{letter} in {walk}({size}):")
            indent += "    "
            axis, part = self.places[outer + place]
            terms = axis.part(part) + (f" * {stride}" if stride != 1 else "")
            terms += f" + step_{letter}" + (f" * {dilation}" if dilation != 1 else "") + (f" - {padding}" if padding else "")
            lines.append(f"{indent}at_{letter} = {terms}")
            if padding:
                tests += [f"(at_{letter} >= 0)", f"(at_{letter} < in_{letter})"]
        return [*lines, *(indent + line for line in self._step(tests, start, counted)), *self._divide(total, counted)]

    def _step(self, tests: list[str], start: str, counted: bool) -> list[str]:
        where = f"at_{self.letters[0]}"
        for letter in self.letters[1:]:
            where = f"({where}) * in_{letter} + at_{letter}" if " " in where else f"{where} * in_{letter} + at_{letter}"
        lines = [f"inside = {' & '.join(tests)}"] if len(tests) > 1 else []
        mask = "inside" if lines else tests[0]
        lines.append(f"here = tl.load(base + {where}, mask={mask}, other={start}){conversion(self.source.meta.dtype)}")
        lines += ["count += tl.where(inside, 1.0, 0.0)"] if counted else []
        grow = "tl.maximum(acc, here, propagate_nan=tl.PropagateNan.ALL)" if self.window.kind == "max" else "acc + here"
        return [*lines, f"acc = {grow}"]

    def _divide(self, total: int, counted: bool) -> list[str]:
        if self.window.kind == "max":
            return []
        return ["acc = acc / count"] if counted else [f"acc = acc * {1 / total!r}"]

    def _host(self, extents: list[str]) -> list[str]:
        source, window, rank = self.source.name, self.window, len(self.letters)
        lines = [f"{access.name} = {access.name}.contiguous()" for access in self.reads if access.may_need_copy]
        lines += [f"in_{letter} = {source}.shape[{place - rank}]" for place, letter in enumerate(self.letters)]
        spatial = self.space.kernel.builder.atoms.leaves(window.spatial)
        known: dict[str, tuple[int, ...]] = {}
        for place, letter in enumerate(self.letters):
            span = 2 * window.padding[place] - window.dilation[place] * (window.size[place] - 1) - 1
            lines.append(f"out_{letter} = (in_{letter} {'+' if span >= 0 else '-'} {abs(span)}) // {window.stride[place]} + 1")
            self.space.given[(spatial[place],)] = f"out_{letter}"
        for axis in self.space.axes:
            self.space.used.setdefault(axis.size_name, axis.atoms)
        lines += self.frame.size_lines(known)
        lines += [allocation(self.space, access, known, source) for access in self.writes]
        lines += guard(self.space, (self.source, *self.writes))
        warps = int(self.parameters["num_warps"])
        elements = int(self.parameters["ELEMENTS"]) * 32 * warps
        constants: dict[str, object] = {"BLOCK": elements}
        if self.tile:
            lines += [f"block_n = min(triton.next_power_of_2(n_cols), {elements})", f"block_m = {elements} // block_n"]
            outer = "n_outer * " if len(self.space.axes) == 3 else ""
            lines.append(f"grid = ({outer}triton.cdiv(n_rows, block_m) * triton.cdiv(n_cols, block_n),)")
            constants = {"BLOCK_M": "block_m", "BLOCK_N": "block_n"}
        else:
            lines.append(f"grid = (triton.cdiv(n_elements, {elements}),)")
        call = self.frame.call_arguments(constants)
        count = len(self.frame.tensors())
        lines += block(f"{self.name}_kernel[grid]", [*call[:count], *extents, *call[count:], f"num_warps={warps}"], "")
        lines.append("return " + ", ".join(access.name for access in self.writes))
        result = "torch.Tensor" if len(self.writes) == 1 else f"tuple[{', '.join(['torch.Tensor'] * len(self.writes))}]"
        parameters = [f"{access.name}: torch.Tensor" for access in self.reads]
        return [*block(f"def {self.name}", parameters, f" -> {result}:"), *("    " + line for line in lines)]

    def _load(self, scope: Scope, expr: int) -> str:
        access = self.reads[self.body.b.exprs[expr].extra]
        return self.body.bind(scope, expr, self.frame.load_text(access))

    def _reduce(self, scope: Scope, expr: int) -> str:
        raise LoweringError("a pooling region has no reductions")
