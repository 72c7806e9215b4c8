"""The kernels of a product: whole tiles, split-K, stream-K, persistent and operand-stationary programs, each with its epilogue."""

from __future__ import annotations

from tools.codegen.ir.expr import LoweringError
from tools.codegen.ir.kernel import Kernel, Triangle
from tools.codegen.templates.matmul.k_loop import MatmulLoop
from tools.codegen.templates.matmul.layout import MatmulLayout
from tools.codegen.templates.matmul.legality import OPERAND_STATIONARY
from tools.codegen.templates.matmul.operand_stationary import OperandStationaryLoop
from tools.codegen.templates.matmul.tile_place import TilePlace
from tools.codegen.templates.shared.body import Body
from tools.codegen.templates.shared.column_folds import folded
from tools.codegen.templates.shared.frame import Frame, block, summary
from tools.codegen.templates.shared.knob import Settings
from tools.codegen.templates.shared.naming import Names, Scope
from tools.codegen.templates.shared.prepack import Pack, Pass

DATA_PARALLEL, PERSISTENT, STREAM = "data_parallel", "persistent", "stream_k"
"""What a program does."""


class MatmulKernels:
    """Writes the kernels of one product region."""

    def __init__(self, kernel: Kernel, name: str, parameters: Settings, plan: MatmulLayout, k_major: bool) -> None:
        """Take the region and its layout; with `k_major` the right operand is copied first."""
        self.name, self.parameters, self.plan, self.k_major = name, parameters, plan, k_major
        self.space = plan.space(kernel)
        self.reads = tuple(access for access in plan.accesses if not access.is_output)
        self.writes = tuple(access for access in plan.accesses if access.is_output)
        self.body = Body(self.space, Names(), self._load, self._reduce)
        self.batched = plan.axes[0].name == "outer"
        self.splits = int(parameters.get("SPLIT_K", 1))
        self.place = TilePlace(self.space, self.batched, self.splits > 1)
        self.programs = str(parameters.get("programs", DATA_PARALLEL))
        self.pack: Pack | None = None
        self.packed: tuple[Pass, ...] = ()
        assert kernel.contraction is not None
        self.stationary = OperandStationaryLoop(self.space, plan, parameters) if self.programs == OPERAND_STATIONARY else None
        self.loop = self.stationary or MatmulLoop(self.space, plan, parameters, _triangle(kernel), convolves=kernel.contraction.convolves)
        if self.splits > 1 and self.programs != DATA_PARALLEL:
            raise LoweringError("SPLIT_K shares out the sums of a tile that has programs of its own")

    def _frame(self, name: str) -> Frame:
        masks = {"rows": "mask_m", "cols": "mask_n"}
        return Frame(self.space, name, Names(), self.reads, self.writes, self.body, masks)

    def whole(self) -> list[str]:
        """Write the one kernel that makes tiles and what follows them."""
        self.frame = self._frame(f"{self.name}_kernel")
        lines: list[str] = []
        self.loop.write(Scope(lines, "    "))
        lines += self._epilogue()
        if self.programs != PERSISTENT:
            text = self.frame.finish([*self.place.counts(), "    pid = tl.program_id(0)", *self.place.of_pid(grouped=True), *lines])
            return self._kernel(self.frame, text, self.loop.pointers(), "One tile of the product a program")
        every = f"{self.place.sizes()['outer']} * tiles_m * tiles_n" if self.batched else "tiles_m * tiles_n"
        # one loop of both (flatten=True) took 1218 µs by descriptors on an H200 where two by pointers took 875 µs (4096³, fp16x3)
        walk = f"    for tile in tl.range(tl.program_id(0), {every}, tl.num_programs(0)):"
        inside = ["    pid = tile", *self.place.of_pid(grouped=True), *lines]
        text = self.frame.finish([*self.place.counts(), walk, *("    " + line for line in inside)])
        return self._kernel(self.frame, text, self.loop.pointers(), "Tiles of the product, one after the other")

    def stationary_kernel(self, loop: OperandStationaryLoop) -> list[str]:
        """Write the one kernel whose programs hold a tile of one operand, walk the other and make what follows of each tile."""
        self.frame = self._frame(f"{self.name}_kernel")
        lines: list[str] = []
        loop.write(Scope(lines, "    "))
        lines += self._epilogue()
        stationary: list[str] = []
        loop.hold(Scope(stationary, "    "))
        place = [f"    {loop.tile} = tl.program_id(0)"]
        if self.batched:
            place = ["    pid = tl.program_id(0)", *self.place.batch(loop.tiles), f"    {loop.tile} = pid % {loop.tiles}"]
        rows, cols = self.place.rows(f" + {loop.along('rows')}"), self.place.columns(f" + {loop.along('cols')}")
        kept, walked = (rows, cols) if loop.left_stationary else (cols, rows)
        text = self.frame.finish([*self.place.counts(), *place, *kept, *stationary, *("    " + line for line in (*walked, *lines))])
        return self._kernel(self.frame, text, loop.pointers(), loop.title)

    def split_k(self) -> list[str]:
        """Write the kernel that sums parts, and the one that adds them."""
        self.partial = self._frame(f"{self.name}_partial_kernel")
        size = self.place.sizes()
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
        text = self.partial.finish([*self.place.counts(), pid, *self.place.of_pid(grouped=True), *lines])
        first = self._kernel(self.partial, text, [*self.loop.pointers(), "parts_ptr"], "A part of the sums of one tile a program")
        self.frame = self._frame(f"{self.name}_kernel")
        lines = [
            "    acc = tl.zeros([BLOCK_M, BLOCK_N], dtype=tl.float32)",
            "    for split in range(SPLIT_K):",
            f"        acc += tl.load({self._part('split')}, mask=mask_m & mask_n, other=0.0)",
            # before the place of the tile is written: only then is known which parts of a position it reads and writes by
            *self._epilogue(),
        ]
        text = self.frame.finish([*self.place.counts(), pid, *self.place.of_pid(grouped=False), *lines])
        return [*first, "", "", *self._kernel(self.frame, text, ["parts_ptr"], "Adds the parts of one tile in order")]

    def stream_k(self) -> list[str]:
        """Write the kernel that sums equal shares of the tiles from `full` on, and the one that adds them tile by tile."""
        self.partial = self._frame(f"{self.name}_partial_kernel")
        lines = [
            "    pid = full + tile",
            *self.place.of_pid(grouped=True),
            "    begin = (tl.maximum(first, tile * steps) - tile * steps) * BLOCK_K",
            "    end = (tl.minimum(last, (tile + 1) * steps) - tile * steps) * BLOCK_K",
        ]
        self.loop.write(Scope(lines, "    "), "begin", "end")
        inside = "tl.arange(0, BLOCK_M)[:, None] * BLOCK_N + tl.arange(0, BLOCK_N)[None, :]"
        lines.append("    part = parts_ptr + (tl.program_id(0) + tile).to(tl.int64) * (BLOCK_M * BLOCK_N)")
        lines.append(f"    tl.store(part + {inside}, acc)")
        head = [
            *self.place.counts(),
            "    first = tl.program_id(0) * share",
            "    last = tl.minimum(first + share, n_steps)",
            "    for tile in range(first // steps, tl.cdiv(last, steps)):",
        ]
        text = self.partial.finish([*head, *("    " + line for line in lines)])
        extra = ["parts_ptr", "full", "steps", "share", "n_steps"]
        first = self._kernel(self.partial, text, [*self.loop.pointers(), *extra], "An equal share of the steps of the last tiles a program")
        self.rest = self._frame(f"{self.name}_rest_kernel")
        # first: only then is known which parts of a position the tile reads and writes by
        epilogue = self._epilogue(self.rest)
        lines = [
            *self.place.counts(),
            "    tile = tl.program_id(0)",
            "    pid = full + tile",
            "    row = tl.program_id(1) * ROWS",
            *self.place.of_pid(grouped=True, rows=" + row + tl.arange(0, ROWS)[:, None]"),
            "    acc = tl.zeros([ROWS, BLOCK_N], dtype=tl.float32)",
            "    for program in range(tile * steps // share, ((tile + 1) * steps - 1) // share + 1):",
            "        part = parts_ptr + (program + tile).to(tl.int64) * (BLOCK_M * BLOCK_N) + row * BLOCK_N",
            "        acc += tl.load(part + tl.arange(0, ROWS)[:, None] * BLOCK_N + tl.arange(0, BLOCK_N)[None, :])",
        ]
        text = self.rest.finish([*lines, *epilogue])
        return [*first, "", "", *self._kernel(self.rest, text, extra[:-1], "Adds the parts of one of the last tiles in order")]

    def _part(self, split: str) -> str:
        """Write where a tile of one part lies."""
        size = self.place.sizes()
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

    def _load(self, scope: Scope, expr: int) -> str:
        access = self.reads[self.body.b.exprs[expr].extra]
        return self.body.bind(scope, expr, self.writing.load_text(access))

    def _reduce(self, scope: Scope, expr: int) -> str:
        return folded(self.body, scope, expr)


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
