"""The template of matrix products (GEMM): one tile of the result a program, with an epilogue of the pointwise operators after it.

Partial sums are kept in float32. `accumulate=chunked` sums each step's block in a fresh accumulator and adds it to the
running one in float32, which keeps the error of long sums near that of pairwise summation. Programs walk the tiles in groups
of `GROUP_M` rows of tiles, so that those running together share operands in the L2 cache. Split-K (`SPLIT_K` above one) gives each tile to
several programs, which sum a part each and write it down; a second kernel adds the parts in order and does the rest.

`programs=persistent` is a persistent kernel: one program a multiprocessor, which walks tiles in the same order. `programs=stream_k`
(stream-K) gives a tile to each multiprocessor as long as there is one for all; the steps of what is left are dealt out evenly, and a
third kernel adds the parts. `programs=operand_stationary` is for short sums: a program keeps a tile of one operand and walks all of the
other (`operand_stationary.py`).
"""

from __future__ import annotations

from tools.codegen.ir.kernel import Kernel
from tools.codegen.templates.matmul.kernels import DATA_PARALLEL, PERSISTENT, STREAM, MatmulKernels
from tools.codegen.templates.matmul.layout import matmul_layout
from tools.codegen.templates.shared.column_folds import held_lines
from tools.codegen.templates.shared.frame import Frame, RegionText, allocation, block, guard
from tools.codegen.templates.shared.knob import Settings
from tools.codegen.templates.shared.prepack import ARGUMENT, WEIGHTS, Pass, packed, packing_function, taken_lines

COMBINED = (8, 128)
"""Rows and columns that a program of the second kernel adds up."""

TURNED = "in_order"
"""Helper that lays a right operand out along the sum; PyTorch's own copies reach a sixth to a quarter of a copy's rate."""


def emit(kernel: Kernel, name: str, parameters: Settings) -> RegionText:
    """Write the kernel and its host function."""
    k_major = parameters.get("right", "as_is") == "k_major"
    return _Writer(kernel, name, parameters, matmul_layout(kernel, k_major), k_major).write()


class _Writer(MatmulKernels):
    """Writes one product region: its kernels, and the host function that launches them."""

    def write(self) -> RegionText:
        """Write kernels and host function."""
        kernels = self.split_k() if self.splits > 1 else self.stationary_kernel(self.stationary) if self.stationary else self.whole()
        if self.programs == STREAM:
            kernels += ["", "", *self.stream_k()]
        host = self._host()
        if self.packed:
            self.pack, text = packing_function(self.name, self.name, self.packed, self.space)
            kernels += ["", "", *text]
        counted = ("multiprocessors",) if self.programs != DATA_PARALLEL else ()
        return RegionText(
            self.name,
            tuple(access.ref for access in self.reads),
            tuple(access.ref for access in self.writes),
            "\n".join([*kernels, "", "", *host]),
            (*self.body.helpers, *self.loop.helpers(), *counted, *((TURNED,) if self.k_major else ())),
            tuple(self.frame.given.values()),
            pack=self.pack,
        )

    def _host(self) -> list[str]:
        known: dict[str, tuple[int, ...]] = {}
        device = self.reads[0].name
        lines = []
        for axis in self.space.axes:
            self.space.used.setdefault(axis.size_name, axis.atoms)
        passes = self.loop.passes()
        copy = self._k_major_copy()
        # parts of a copy are made after it, at every call
        able = [each for each in passes if not copy or each.access.name != copy.access.name]
        self.packed = packed([copy] if copy and not passes else able, self.parameters.get(WEIGHTS))
        for access in self.reads:
            if copy and access.name == copy.access.name:
                lines += [] if copy in self.packed else [copy.line]
            elif access.may_need_copy:
                lines.append(f"{access.name} = {access.name}.contiguous()")
        lines += taken_lines(self.packed)
        lines += self.frame.size_lines(known)
        lines += held_lines(self.plan.folds, int(self.parameters["BLOCK_N"]))
        lines += [each.line for each in passes if each not in self.packed]
        lines += self.loop.descriptors()
        lines += [allocation(self.space, access, known, device) for access in self.writes]
        lines += guard(self.space, (self.plan.left, self.plan.right, *self.writes))
        lines += self._launches(device)
        lines.append("return " + ", ".join(access.name for access in self.writes))
        result = "torch.Tensor" if len(self.writes) == 1 else f"tuple[{', '.join(['torch.Tensor'] * len(self.writes))}]"
        parameters = self.frame.host_parameters(lines)
        parameters += [f"{ARGUMENT}: list[torch.Tensor]"] if self.packed else []
        return [*block(f"def {self.name}", parameters, f" -> {result}:"), *("    " + line for line in lines)]

    def _k_major_copy(self) -> Pass | None:
        """Write the copy of a right operand that lies along the sum."""
        if not self.k_major:
            return None
        right = self.plan.right
        *before, rows, cols = range(len(right.dims))
        return Pass(right, f"{right.name} = {TURNED}({right.name}, {(*before, cols, rows)}).transpose(-2, -1)", (right.name,))

    def _launches(self, device: str) -> list[str]:
        p = self.parameters
        batch = "n_outer * " if self.batched else ""
        tiles = f"{batch}triton.cdiv(n_rows, {p['BLOCK_M']}) * triton.cdiv(n_cols, {p['BLOCK_N']})"
        constants: dict[str, object] = {name: p[name] for name in ("BLOCK_M", "BLOCK_N", "BLOCK_K", "GROUP_M")}
        constants["EVEN_K"] = f"n_inner % {p['BLOCK_K']} == 0"
        launch = [f"num_warps={p['num_warps']}", f"num_stages={p['num_stages']}"]
        given = self.loop.arguments()
        if self.programs == STREAM:
            return self._stream_launches(device, tiles, constants, launch)
        if self.stationary:
            constants |= {"BLOCK_K": "block_k", "LONG": "n_inner > block_k"}
            return [*self.stationary.grid(batch, device), *self._call(self.frame, given, constants, launch)]
        if self.programs == PERSISTENT:
            return [f"grid = (min(multiprocessors({device}), {tiles}),)", *self._call(self.frame, given, constants, launch)]
        if self.splits == 1:
            return [f"grid = ({tiles},)", *self._call(self.frame, given, constants, launch)]
        shape = f"({self.splits}, {'n_outer, ' if self.batched else ''}n_rows, n_cols)"
        rows, cols = COMBINED
        again: dict[str, object] = {"BLOCK_M": rows, "BLOCK_N": cols, "SPLIT_K": self.splits}
        return [
            f"parts = torch.empty({shape}, dtype=torch.float32, device={device}.device)",
            f"grid = ({tiles}, {self.splits})",
            *self._call(self.partial, [*given, "parts"], constants, launch),
            f"grid = ({batch}triton.cdiv(n_rows, {rows}) * triton.cdiv(n_cols, {cols}),)",
            *self._call(self.frame, ["parts"], again, ["num_warps=4"]),
        ]

    def _stream_launches(self, device: str, tiles: str, constants: dict[str, object], launch: list[str]) -> list[str]:
        """Write the three launches: whole tiles in full rounds of programs, shares of those left, and their sums."""
        p, given = self.parameters, self.loop.arguments()
        numbers = ["full", "steps", "share"]
        add = {**{name: constants[name] for name in ("BLOCK_M", "BLOCK_N", "GROUP_M")}, "ROWS": COMBINED[0]}
        return [
            f"n_tiles, programs = {tiles}, multiprocessors({device})",
            "full = n_tiles // programs * programs",
            "if full:",
            "    grid = (full,)",
            *("    " + line for line in self._call(self.frame, given, constants, launch)),
            "if full < n_tiles:",
            f"    steps = triton.cdiv(n_inner, {p['BLOCK_K']})",
            "    n_steps = (n_tiles - full) * steps",
            "    share = triton.cdiv(n_steps, programs)",
            f"    shape = (programs + n_tiles - full, {p['BLOCK_M']}, {p['BLOCK_N']})",
            f"    parts = torch.empty(shape, dtype=torch.float32, device={device}.device)",
            "    grid = (programs,)",
            *("    " + line for line in self._call(self.partial, [*given, "parts", *numbers, "n_steps"], constants, launch)),
            f"    grid = (n_tiles - full, {int(p['BLOCK_M']) // COMBINED[0]})",
            *("    " + line for line in self._call(self.rest, ["parts", *numbers], add, ["num_warps=4"])),
        ]

    def _call(self, frame: Frame, extra: list[str], constants: dict[str, object], launch: list[str]) -> list[str]:
        own, count = frame.call_arguments(constants), len(frame.tensors())
        return block(f"{frame.name}[grid]", [*own[:count], *extra, *own[count:], *launch], "")
