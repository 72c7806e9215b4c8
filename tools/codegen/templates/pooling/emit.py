"""The template of pooling: one element of the result a lane, its window gathered step by step, then the pointwise operators after it.

`flat` numbers the elements of the result one by one and takes each number apart; `tile` gives a program a tile of the
result's last two dimensions, so that only the program's own number is taken apart. `pairs` is a tile of whole rows whose windows
are two elements apart: what is in memory is loaded once, neighbours together, and handed from lane to lane. `vec4` is a tile
whose windows are one element apart: a lane makes four neighbours of blocks of four, each loaded once and taken apart in registers.
`across` is a tile of wide windows that share little: its lanes lie along each window, and come together at the end.
"""

from __future__ import annotations

from tools.codegen.ir.expr import LoweringError
from tools.codegen.ir.geometry import PoolKind, Window
from tools.codegen.ir.kernel import Kernel
from tools.codegen.ir.sizes import power_of_two
from tools.codegen.templates.pooling.layout import LETTERS, OWN_NAMES, fits_across, fits_pairs, fits_vec4, pooling_layout, tile_axes
from tools.codegen.templates.pooling.window_loop import Algorithm, WindowLoop
from tools.codegen.templates.shared.body import Body
from tools.codegen.templates.shared.frame import Frame, RegionText, allocation, block, conversion, fitting, guard, summary
from tools.codegen.templates.shared.host_sizes import host_size
from tools.codegen.templates.shared.iteration_space import Axis, Space
from tools.codegen.templates.shared.knob import Settings
from tools.codegen.templates.shared.naming import Names, Scope


def emit(kernel: Kernel, name: str, parameters: Settings) -> RegionText:
    """Write the kernel and its host function."""
    return _Writer(kernel, name, parameters).write()


class _Writer:
    """Writes one pooling region."""

    def __init__(self, kernel: Kernel, name: str, parameters: Settings) -> None:
        self.name, self.parameters = name, parameters
        assert kernel.window is not None
        self.window: Window = kernel.window
        accesses, axis = pooling_layout(kernel)
        algorithm = parameters.get("algorithm", "flat")
        self.pairs = algorithm == "pairs" and fits_pairs(kernel)
        self.vec4 = algorithm == "vec4" and fits_vec4(kernel)
        self.across = algorithm == "across" and fits_across(kernel)
        self.tile = algorithm in ("tile", "pairs", "vec4", "across") and len(axis.groups) > 1
        axes: tuple[Axis, ...] = (axis,)
        masks = {"elements": "mask"}
        if self.tile:
            axes = tile_axes(axis)
            masks = {"rows": "mask_m", "cols": "mask_n"}
        self.reads = tuple(access for access in accesses if not access.is_output)
        self.writes = tuple(access for access in accesses if access.is_output)
        self.letters = LETTERS[-len(self.window.size) :]
        atoms = kernel.builder.atoms
        self.inside, self.spatial = atoms.leaves(self.window.inside), atoms.leaves(self.window.spatial)
        looked = tuple(
            Axis(f"in_{letter}", f"at_{letter}", (atom,), ((atom,),)) for letter, atom in zip(self.letters, self.inside, strict=True)
        )
        self.space = Space(kernel, (*axes, *looked), accesses)
        self.walked = axes
        self.body = Body(self.space, Names(OWN_NAMES), self._load, self._reduce)
        chosen = Algorithm.TILE if self.tile else Algorithm.FLAT
        shared = {Algorithm.PAIRS: self.pairs, Algorithm.VEC4: self.vec4, Algorithm.ACROSS: self.across}
        chosen = next((algorithm for algorithm, fits in shared.items() if fits), chosen)
        self.loop = WindowLoop(self.window, self.space, self.walked, self.body, chosen)
        self.frame = Frame(self.space, f"{name}_kernel", Names(), self.reads, self.writes, self.body, masks)

    def write(self) -> RegionText:
        """Write kernel and host function."""
        lines: list[str] = []
        scope = Scope(lines, "    ")
        self.loop.write(scope)
        scope.names[self.window.expr] = "acc"
        if self.window.position >= 0:
            scope.names[self.window.position] = "best"
        for output, access in zip(self.space.kernel.outputs, self.writes, strict=True):
            self.frame.store(scope, access, self.body.assign(scope, output.expr))
        head = self._tile_head() if self.tile else self._flat_head()
        text = self.frame.finish([*("    " + line for line in head), *lines])
        made = "Four neighbours a lane, acc_0 to acc_3, of blocks of four elements" if self.vec4 else "One element a lane"
        made = "Lanes along the windows of each element" if self.across else made
        kernel = [
            "@triton.jit",
            *block(f"def {self.name}_kernel", self.frame.signature(["BLOCK_M", "BLOCK_N", "BLOCK"]), ":"),
            f'    """{made}: {summary(self.space.kernel, self.reads, self.writes)}."""',
            *text,
        ]
        inputs, outputs = tuple(access.ref for access in self.reads), tuple(access.ref for access in self.writes)
        return RegionText(self.name, inputs, outputs, "\n".join([*kernel, "", "", *self._host()]), tuple(self.body.helpers))

    def _flat_head(self) -> list[str]:
        axis = self.space.axes[0]
        size = self.space.monomial(axis.atoms)
        wide = ".to(tl.int64)" if self.space.is_wide() else ""
        self.space.parts_used.add(axis.name)
        head = [f"offs = tl.program_id(0){wide} * BLOCK + tl.arange(0, BLOCK)", f"mask = offs < {size}"]
        return head + self.space.parts(axis)

    def _tile_head(self) -> list[str]:
        *outer, rows, cols = self.walked
        wide = ".to(tl.int64)" if self.space.is_wide() else ""
        lines = ["pid = tl.program_id(0)"]
        tile = "pid"
        if outer:
            self.space.parts_used.add("outer")
            lines += [f"tiles_m = tl.cdiv({self.space.monomial(rows.atoms)}, BLOCK_M)"]
            lines += [f"outer = {f'(pid // tiles_m){wide}' if wide else 'pid // tiles_m'}"]
            lines += self.space.parts(outer[0])
            tile = "pid % tiles_m"
        return [
            *lines,
            f"rows = ({tile}){wide} * BLOCK_M + tl.arange(0, BLOCK_M)[:, None{', None' if self.vec4 or self.across else ''}]",
            f"mask_m = rows < {self.space.monomial(rows.atoms)}",
            *self.space.parts(rows),
            *self._cols(),
            f"mask_n = cols < {self.space.monomial(cols.atoms)}",
        ]

    def _cols(self) -> list[str]:
        if self.vec4:
            quads = "quads = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)[None, :, None]"
            return [quads, "cols = quads * 4 + tl.arange(0, 4)[None, None, :]"]
        if self.across:
            return ["cols = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)[None, :, None]"]
        return [f"cols = {'' if self.pairs else 'tl.program_id(1) * BLOCK_N + '}tl.arange(0, BLOCK_N)[None, :]"]

    def _host(self) -> list[str]:
        device = self.reads[0].name
        lines = [f"{access.name} = {access.name}.contiguous()" for access in self.reads if access.may_need_copy]
        known: dict[str, tuple[int, ...]] = {}
        for place, letter in enumerate(self.letters):
            extent = f"n_in_{letter}"
            lines.append(f"{extent} = {host_size(self.space, (self.inside[place],), known)}")
            known[extent] = (self.inside[place],)
            lines += self._out_size(place, letter, extent)
            self.space.given[(self.spatial[place],)] = f"out_{letter}"
        lines += fitting(self._looked_at())
        for axis in self.space.axes:
            self.space.used.setdefault(axis.size_name, axis.atoms)
        lines += self.frame.size_lines(known)
        lines += [allocation(self.space, access, known, device) for access in self.writes]
        looked = [access for access in self.reads if set(access.strides) & set(self.inside)]
        lines += guard(self.space, (*looked, *self.writes))
        warps = int(self.parameters["num_warps"])
        elements = int(self.parameters["ELEMENTS"]) * 32 * warps
        constants: dict[str, object] = {"BLOCK": elements}
        if self.pairs:
            # whole rows of the result, and of what its windows look at
            lines.append(f"block_n = triton.next_power_of_2(max(n_cols, triton.cdiv(n_in_{self.letters[-1]}, 2)))")
            lines.append(f"block_m = max({elements} // block_n, 1)")
            lines.append(f"grid = ({'n_outer * ' if len(self.walked) == 3 else ''}triton.cdiv(n_rows, block_m),)")
            constants = {"BLOCK_M": "block_m", "BLOCK_N": "block_n"}
        elif self.tile:
            lanes, across = (elements // 4, "triton.cdiv(n_cols, 4)") if self.vec4 else (elements, "n_cols")
            lanes = max(1, elements // power_of_two(self.window.size[-1])) if self.across else lanes
            lines += [f"block_n = min(triton.next_power_of_2({across}), {lanes})", f"block_m = {lanes} // block_n"]
            outer = "n_outer * " if len(self.walked) == 3 else ""
            lines.append(f"grid = ({outer}triton.cdiv(n_rows, block_m), triton.cdiv(n_cols, {'4 * ' if self.vec4 else ''}block_n))")
            constants = {"BLOCK_M": "block_m", "BLOCK_N": "block_n"}
        else:
            lines.append(f"grid = (triton.cdiv(n_elements, {elements}),)")
        lines += block(f"{self.name}_kernel[grid]", [*self.frame.call_arguments(constants), f"num_warps={warps}"], "")
        lines.append("return " + ", ".join(access.name for access in self.writes))
        result = "torch.Tensor" if len(self.writes) == 1 else f"tuple[{', '.join(['torch.Tensor'] * len(self.writes))}]"
        parameters = [f"{access.name}: torch.Tensor" for access in self.reads]
        return [*block(f"def {self.name}", parameters, f" -> {result}:"), *("    " + line for line in lines)]

    def _out_size(self, place: int, letter: str, extent: str) -> list[str]:
        """Write how many windows there are along a dimension."""
        window, stride = self.window, self.window.stride[place]
        if window.windows:
            return [f"out_{letter} = {window.windows[place]}"]
        span = self._span(place)
        lines = [f"out_{letter} = ({extent} {'+' if span >= 0 else '-'} {abs(span)}) // {stride} + 1"]
        if window.ceil:
            # a window that would begin beyond the input and its padding does not count
            lines.append(f"out_{letter} -= (out_{letter} - 1) * {stride} >= {extent} + {window.padding[place]}")
        return lines

    def _looked_at(self) -> list[str]:
        """List what is above 0 where windows fit: PyTorch wants whole ones of an average in three dimensions, padding aside."""
        window = self.window
        if window.kind is PoolKind.MEAN and len(self.letters) == 3 and not window.windows:
            return [f"n_in_{letter} - {size - 1}" for letter, size in zip(self.letters, window.size, strict=True) if size > 1]
        return [f"out_{letter}" for place, letter in enumerate(self.letters) if self._span(place) < -1]

    def _span(self, place: int) -> int:
        """By how much a dimension is longer than what its first window reaches over."""
        window = self.window
        if window.windows:
            return 0
        span = 2 * window.padding[place] - window.dilation[place] * (window.size[place] - 1) - 1
        return span + (window.stride[place] - 1 if window.ceil else 0)

    def _load(self, scope: Scope, expr: int) -> str:
        access = self.reads[self.body.b.exprs[expr].extra]
        if not set(access.strides) & set(self.inside):
            return self.body.bind(scope, expr, self.frame.load_text(access))
        other = (
            self.loop.fill if expr == self.window.source else "0" if "int" in access.meta.dtype or access.meta.dtype == "bool" else "0.0"
        )
        text = f"tl.load({self.frame.offset(access)}, mask={self.loop.mask}, other={other}){conversion(access.meta.dtype)}"
        return self.body.bind(scope, expr, text)

    def _reduce(self, scope: Scope, expr: int) -> str:
        raise LoweringError("a pooling region has no reductions")
