"""The template of products: one tile of the result a program, and the pointwise operators after it in the same kernel.

Partial sums are kept in float32. `accumulate=chunked` sums each step's block in a fresh accumulator and adds it to the
running one in float32, which keeps the error of long sums near that of pairwise summation. Programs walk the tiles in groups
of `GROUP_M` rows of tiles, so that those running together share operands in the L2 cache. `SPLIT_K` above one gives each tile to
several programs, which sum a part each and write it down; a second kernel adds the parts in order and does the rest.

`programs=persistent` launches one program a multiprocessor, which walks tiles in the same order. `programs=stream_k` gives a tile to each
multiprocessor as long as there is one for all; the steps of what is left are dealt out evenly, and a third kernel adds the parts.
`programs=operand_stationary` is for short sums: a program holds a tile of one operand and walks all of the other (`operand_stationary`).
"""

from __future__ import annotations

from tools.codegen.ir.expr import LoweringError
from tools.codegen.ir.kernel import Kernel, Triangle
from tools.codegen.templates.matmul.k_loop import ProductLoop
from tools.codegen.templates.matmul.layout import ProductLayout, product_layout
from tools.codegen.templates.matmul.legality import OPERAND_STATIONARY
from tools.codegen.templates.matmul.operand_stationary import OperandStationaryLoop
from tools.codegen.templates.shared.body import Body
from tools.codegen.templates.shared.frame import Frame, Parameters, RegionText, allocation, block, guard, summary
from tools.codegen.templates.shared.naming import Names, Scope
from tools.codegen.templates.shared.prepack import ARGUMENT, WEIGHTS, Pack, Pass, packed, packing_function, taken_lines

NAME = "matmul"
COMBINED = (8, 128)
"""Rows and columns that a program of the second kernel adds up."""
DATA_PARALLEL, PERSISTENT, STREAM = "data_parallel", "persistent", "stream_k"
"""What a program does."""


def emit(kernel: Kernel, name: str, parameters: Parameters) -> RegionText:
    """Write the kernel and its host function."""
    k_major = parameters.get("right", "as_is") == "k_major"
    return _Writer(kernel, name, parameters, product_layout(kernel, k_major), k_major).write()


class _Writer:
    """Writes one product region."""

    def __init__(self, kernel: Kernel, name: str, parameters: Parameters, plan: ProductLayout, k_major: bool) -> None:
        self.name, self.parameters, self.plan, self.k_major = name, parameters, plan, k_major
        self.space = plan.space(kernel)
        self.reads = tuple(access for access in plan.accesses if not access.is_output)
        self.writes = tuple(access for access in plan.accesses if access.is_output)
        self.body = Body(self.space, Names(), self._load, self._reduce)
        self.batched = plan.axes[0].name == "outer"
        self.splits = int(parameters.get("SPLIT_K", 1))
        self.programs = str(parameters.get("programs", DATA_PARALLEL))
        self.pack: Pack | None = None
        self.packed: tuple[Pass, ...] = ()
        self.stationary = OperandStationaryLoop(self.space, plan, parameters) if self.programs == OPERAND_STATIONARY else None
        self.loop = self.stationary or ProductLoop(self.space, plan, parameters, _triangle(kernel))
        if self.splits > 1 and self.programs != DATA_PARALLEL:
            raise LoweringError("SPLIT_K shares out the sums of a tile that has programs of its own")

    def write(self) -> RegionText:
        """Write kernels and host function."""
        kernels = self._split() if self.splits > 1 else self._stationary(self.stationary) if self.stationary else self._whole()
        if self.programs == STREAM:
            kernels += ["", "", *self._stream()]
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
            (*self.body.helpers, *self.loop.helpers(), *counted),
            pack=self.pack,
        )

    def _frame(self, name: str) -> Frame:
        masks = {"rows": "mask_m", "cols": "mask_n"}
        return Frame(self.space, name, Names(), self.reads, self.writes, self.body, masks)

    def _whole(self) -> list[str]:
        """Write the one kernel that makes tiles and what follows them."""
        self.frame = self._frame(f"{self.name}_kernel")
        lines: list[str] = []
        self.loop.write(Scope(lines, "    "))
        lines += self._epilogue()
        if self.programs != PERSISTENT:
            text = self.frame.finish([*self._counts(), "    pid = tl.program_id(0)", *self._place(grouped=True), *lines])
            return self._kernel(self.frame, text, self.loop.pointers(), "One tile of the product a program")
        every = f"{self._sizes()['outer']} * tiles_m * tiles_n" if self.batched else "tiles_m * tiles_n"
        # one loop of both (flatten=True) took 1218 µs by descriptors on an H200 where two by pointers took 875 µs (4096³, fp16x3)
        walk = f"    for tile in tl.range(tl.program_id(0), {every}, tl.num_programs(0)):"
        inside = ["    pid = tile", *self._place(grouped=True), *lines]
        text = self.frame.finish([*self._counts(), walk, *("    " + line for line in inside)])
        return self._kernel(self.frame, text, self.loop.pointers(), "Tiles of the product, one after the other")

    def _stationary(self, loop: OperandStationaryLoop) -> list[str]:
        """Write the one kernel whose programs hold a tile of one operand, walk the other and make what follows of each tile."""
        self.frame = self._frame(f"{self.name}_kernel")
        lines: list[str] = []
        loop.write(Scope(lines, "    "))
        lines += self._epilogue()
        stationary: list[str] = []
        loop.hold(Scope(stationary, "    "))
        place = [f"    {loop.tile} = tl.program_id(0)"]
        if self.batched:
            place = ["    pid = tl.program_id(0)", *self._batch(loop.tiles), f"    {loop.tile} = pid % {loop.tiles}"]
        rows, cols = self._rows(f" + {loop.along('rows')}"), self._columns(f" + {loop.along('cols')}")
        kept, walked = (rows, cols) if loop.left_stationary else (cols, rows)
        text = self.frame.finish([*self._counts(), *place, *kept, *stationary, *("    " + line for line in (*walked, *lines))])
        return self._kernel(self.frame, text, loop.pointers(), loop.title)

    def _split(self) -> list[str]:
        """Write the kernel that sums parts, and the one that adds them."""
        self.partial = self._frame(f"{self.name}_partial_kernel")
        size = self._sizes()
        lines = [
            "    split = tl.program_id(1)",
            f"    part = tl.cdiv(tl.cdiv({size['inner']}, BLOCK_K), tl.num_programs(1)) * BLOCK_K",
            "    begin = split * part",
            f"    end = tl.minimum({size['inner']}, begin + part)",
        ]
        self.loop.write(Scope(lines, "    "), "begin", "end")
        where = self._part("split.to(tl.int64)")
        lines.append(f"    tl.store({where}, acc, mask=mask_m & mask_n)")
        pid = "    pid = tl.program_id(0)"
        text = self.partial.finish([*self._counts(), pid, *self._place(grouped=True), *lines])
        first = self._kernel(self.partial, text, [*self.loop.pointers(), "parts_ptr"], "A part of the sums of one tile a program")
        self.frame = self._frame(f"{self.name}_kernel")
        lines = [
            "    acc = tl.zeros([BLOCK_M, BLOCK_N], dtype=tl.float32)",
            "    for split in range(SPLIT_K):",
            f"        acc += tl.load({self._part('split')}, mask=mask_m & mask_n, other=0.0)",
        ]
        text = self.frame.finish([*self._counts(), pid, *self._place(grouped=False), *lines, *self._epilogue()])
        return [*first, "", "", *self._kernel(self.frame, text, ["parts_ptr"], "Adds the parts of one tile in order")]

    def _stream(self) -> list[str]:
        """Write the kernel that sums equal shares of the tiles from `full` on, and the one that adds them tile by tile."""
        self.partial = self._frame(f"{self.name}_partial_kernel")
        lines = [
            "    pid = full + tile",
            *self._place(grouped=True),
            "    begin = (tl.maximum(first, tile * steps) - tile * steps) * BLOCK_K",
            "    end = (tl.minimum(last, (tile + 1) * steps) - tile * steps) * BLOCK_K",
        ]
        self.loop.write(Scope(lines, "    "), "begin", "end")
        inside = "tl.arange(0, BLOCK_M)[:, None] * BLOCK_N + tl.arange(0, BLOCK_N)[None, :]"
        lines.append("    part = parts_ptr + (tl.program_id(0) + tile).to(tl.int64) * (BLOCK_M * BLOCK_N)")
        lines.append(f"    tl.store(part + {inside}, acc)")
        head = [
            *self._counts(),
            "    first = tl.program_id(0) * share",
            "    last = tl.minimum(first + share, n_steps)",
            "    for tile in range(first // steps, tl.cdiv(last, steps)):",
        ]
        text = self.partial.finish([*head, *("    " + line for line in lines)])
        extra = ["parts_ptr", "full", "steps", "share", "n_steps"]
        first = self._kernel(self.partial, text, [*self.loop.pointers(), *extra], "An equal share of the steps of the last tiles a program")
        self.rest = self._frame(f"{self.name}_rest_kernel")
        lines = [
            *self._counts(),
            "    tile = tl.program_id(0)",
            "    pid = full + tile",
            "    row = tl.program_id(1) * ROWS",
            *self._place(grouped=True, rows=" + row + tl.arange(0, ROWS)[:, None]"),
            "    acc = tl.zeros([ROWS, BLOCK_N], dtype=tl.float32)",
            "    for program in range(tile * steps // share, ((tile + 1) * steps - 1) // share + 1):",
            "        part = parts_ptr + (program + tile).to(tl.int64) * (BLOCK_M * BLOCK_N) + row * BLOCK_N",
            "        acc += tl.load(part + tl.arange(0, ROWS)[:, None] * BLOCK_N + tl.arange(0, BLOCK_N)[None, :])",
        ]
        text = self.rest.finish([*lines, *self._epilogue(self.rest)])
        return [*first, "", "", *self._kernel(self.rest, text, extra[:-1], "Adds the parts of one of the last tiles in order")]

    def _part(self, split: str) -> str:
        """Write where a tile of one part lies."""
        size = self._sizes()
        whole = f"{size['outer']} * {size['rows']} * {size['cols']}" if self.batched else f"{size['rows']} * {size['cols']}"
        batch = f" + batch * ({size['rows']} * {size['cols']})" if self.batched else ""
        return f"parts_ptr + {split} * ({whole}){batch} + off_m * {size['cols']} + off_n"

    def _kernel(self, frame: Frame, text: list[str], extra: list[str], title: str) -> list[str]:
        constants = ["BLOCK_M", "BLOCK_N", "BLOCK_K", "GROUP_M", "EVEN_K", "SPLIT_K", "ROWS", "LONG"]
        count = len(frame.tensors())
        own = frame.signature(constants)
        return [
            "@triton.jit",
            *block(f"def {frame.name}", [*own[:count], *extra, *own[count:]], ":"),
            f'    """{title}: {summary(self.space.kernel, self.reads, self.writes)}."""',
            *text,
        ]

    def _epilogue(self, frame: Frame | None = None) -> list[str]:
        """Write what follows the sum, and the stores; in `frame` where it is not the first."""
        contraction = self.space.kernel.contraction
        assert contraction is not None
        self.writing = frame or self.frame
        lines: list[str] = []
        tail = Scope(lines, "    ")
        tail.names[contraction.expr] = "acc"
        for output, access in zip(self.space.kernel.outputs, self.writes, strict=True):
            self.writing.store(tail, access, self.body.assign(tail, output.expr))
        return lines

    def _sizes(self) -> dict[str, str]:
        return {axis.name: self.space.monomial(axis.atoms) for axis in self.space.axes}

    def _counts(self) -> list[str]:
        """Write how many tiles there are."""
        size = self._sizes()
        return [f"    tiles_m = tl.cdiv({size['rows']}, BLOCK_M)", f"    tiles_n = tl.cdiv({size['cols']}, BLOCK_N)"]

    def _place(self, grouped: bool, rows: str = " + tl.arange(0, BLOCK_M)[:, None]") -> list[str]:
        """Write where the tile of number `pid` lies, its `rows` counted from its first one."""
        lines = self._batch("(tiles_m * tiles_n)")
        if self.batched:
            lines.append("    pid = pid % (tiles_m * tiles_n)")
        if grouped:
            lines += [
                "    group = pid // (GROUP_M * tiles_n)",
                "    group_rows = tl.minimum(tiles_m - group * GROUP_M, GROUP_M)",
                "    pid_m = group * GROUP_M + pid % (GROUP_M * tiles_n) % group_rows",
                "    pid_n = pid % (GROUP_M * tiles_n) // group_rows",
            ]
        else:
            lines += ["    pid_m = pid // tiles_n", "    pid_n = pid % tiles_n"]
        return [*lines, *self._rows(rows), *self._columns()]

    def _batch(self, each: str) -> list[str]:
        """Write which of a batch's products `pid` is of, where each has so many."""
        if not self.batched:
            return []
        found = [f"batch = (pid // {each}).to(tl.int64)", *self.space.parts(self.space.axis("outer"))]
        return ["    " + line for line in found]

    def _rows(self, rows: str = " + tl.arange(0, BLOCK_M)[:, None]") -> list[str]:
        found = [f"off_m = pid_m{self._wide()} * BLOCK_M{rows}", f"mask_m = off_m < {self._sizes()['rows']}"]
        return ["    " + line for line in (*found, *self.space.parts(self.space.axis("rows")))]

    def _columns(self, cols: str = " + tl.arange(0, BLOCK_N)[None, :]") -> list[str]:
        found = [f"off_n = pid_n{self._wide()} * BLOCK_N{cols}", f"mask_n = off_n < {self._sizes()['cols']}"]
        return ["    " + line for line in (*found, *self.space.parts(self.space.axis("cols")))]

    def _wide(self) -> str:
        return ".to(tl.int64)" if self.space.is_wide() or self.splits > 1 else ""

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
        lines += [each.line for each in passes if each not in self.packed]
        lines += self.loop.descriptors()
        lines += [allocation(self.space, access, known, device) for access in self.writes]
        lines += guard(self.space, (self.plan.left, self.plan.right, *self.writes))
        lines += self._launches(device)
        lines.append("return " + ", ".join(access.name for access in self.writes))
        result = "torch.Tensor" if len(self.writes) == 1 else f"tuple[{', '.join(['torch.Tensor'] * len(self.writes))}]"
        parameters = [f"{access.name}: torch.Tensor" for access in self.reads]
        parameters += [f"{ARGUMENT}: list[torch.Tensor]"] if self.packed else []
        return [*block(f"def {self.name}", parameters, f" -> {result}:"), *("    " + line for line in lines)]

    def _k_major_copy(self) -> Pass | None:
        """Write the copy of a right operand that lies along the sum."""
        right = self.plan.right
        return Pass(right, f"{right.name} = {right.name}.transpose(-2, -1).contiguous()", (right.name,)) if self.k_major else None

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

    def _load(self, scope: Scope, expr: int) -> str:
        access = self.reads[self.body.b.exprs[expr].extra]
        return self.body.bind(scope, expr, self.writing.load_text(access))

    def _reduce(self, scope: Scope, expr: int) -> str:
        raise LoweringError("a product's region has no reductions")


def _triangle(kernel: Kernel) -> str:
    """Write whether a tile has elements inside the triangle that is kept; empty where all is kept or the sum is read otherwise too."""
    contraction = kernel.contraction
    if contraction is None or not contraction.triangle:
        return ""
    readers = sum(contraction.expr in expr.args for expr in kernel.builder.exprs)
    if readers > 1 or any(output.expr == contraction.expr for output in kernel.outputs):
        return ""
    offset = f" + {contraction.diagonal}" if contraction.diagonal > 0 else f" - {-contraction.diagonal}" if contraction.diagonal else ""
    if contraction.triangle is Triangle.LOWER:
        return f"pid_n * BLOCK_N <= pid_m * BLOCK_M + BLOCK_M - 1{offset}"
    return f"pid_n * BLOCK_N + BLOCK_N - 1 >= pid_m * BLOCK_M{offset}"


__all__ = ["NAME", "emit", "product_layout"]
