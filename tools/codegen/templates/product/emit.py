"""The template of products whose operands are computed on their way: dequantised, scaled, or made of several tensors.

That is done in the loop over the sum. One tile of the result a program, with what follows pointwise; several products over equal rows and
columns have a sum each, and those over the same dimension share a loop and the operand that they have in common. Operands are read as they
are stored, so packed weights move as few bytes as they have; a factor of a row or a column scales the finished sum. `SPLIT_K` gives each
tile to several programs, whose sums a second kernel adds in order.
"""

from __future__ import annotations

from tools.codegen.ir.kernel import Kernel
from tools.codegen.templates.matmul.tile_place import TilePlace
from tools.codegen.templates.product.layout import STACKED, ProductLayout, product_layout
from tools.codegen.templates.product.operands import Product
from tools.codegen.templates.product.runs import lies_within, loads_by_run, neighbours_of
from tools.codegen.templates.shared.body import Body
from tools.codegen.templates.shared.frame import Frame, RegionText, allocation, block, guard, summary
from tools.codegen.templates.shared.host_sizes import host_size
from tools.codegen.templates.shared.iteration_space import Axis
from tools.codegen.templates.shared.knob import Settings
from tools.codegen.templates.shared.naming import Names, Scope
from tools.codegen.templates.shared.operand_tile import OperandTiles, no_reductions
from tools.codegen.templates.shared.split_float import added_product

CONSTANTS = ["BLOCK_M", "BLOCK_N", "BLOCK_K", "GROUP_M", "SPLIT_K"]
COMBINED = (8, 128)
"""Rows and columns that a program of the second kernel adds up."""
SIDES = {"left": "tl.arange(0, BLOCK_K)[None, :]", "right": "tl.arange(0, BLOCK_K)[:, None]"}


def emit(kernel: Kernel, name: str, parameters: Settings) -> RegionText:
    """Write the kernels and their host function."""
    return _Writer(kernel, name, parameters, product_layout(kernel)).write()


class _Writer:
    """Writes one region of products."""

    def __init__(self, kernel: Kernel, name: str, parameters: Settings, plan: ProductLayout) -> None:
        self.name, self.parameters, self.plan = name, parameters, plan
        self.space = plan.space(kernel)
        self.reads = tuple(access for access in plan.accesses if not access.is_output)
        self.writes = tuple(access for access in plan.accesses if access.is_output)
        operands = [expr for each in plan.products for expr in (*each.left, *each.right, *each.factors)]
        self.body = Body(self.space, Names(), self._load, no_reductions, operands)
        self.batched = plan.axes[0].name == "outer"
        self.splits = int(parameters.get("SPLIT_K", 1))
        # parts are found by 64 bits; a part itself is no longer than the result
        self.place = TilePlace(self.space, self.batched, split=False)
        several = len(plan.products) > 1
        self.runs: dict[str, tuple[int, ...]] = {}
        """Of sums of which a step lies within one run: the run's atoms."""
        self.sums = [f"acc_{number}" if several else "acc" for number in range(len(plan.products))]

    def write(self) -> RegionText:
        """Write kernels and host function."""
        kernels = self._split() if self.splits > 1 else self._whole()
        host = self._host()
        return RegionText(
            self.name,
            tuple(access.ref for access in self.reads),
            tuple(access.ref for access in self.writes),
            "\n".join([*kernels, "", "", *host]),
            tuple(self.body.helpers),
            tuple(self.last.given.values()),
        )

    def _new_frame(self, name: str) -> Frame:
        self.frame = Frame(self.space, name, Names(), self.reads, self.writes, self.body, {"rows": "mask_m", "cols": "mask_n"})
        self.tiles = OperandTiles(self.frame, self.body)
        return self.frame

    def _whole(self) -> list[str]:
        """Write the one kernel that makes tiles and what follows them."""
        self.last = self._new_frame(f"{self.name}_kernel")
        lines: list[str] = []
        for name, numbers in self.plan.sums:
            self._loop(Scope(lines, "    "), self.space.axis(name), numbers, "0", self._size(name))
        lines += self._epilogue()
        text = self.last.finish([*self.place.counts(), "    pid = tl.program_id(0)", *self.place.of_pid(grouped=True), *lines])
        return self._kernel(self.last, text, [], "One tile of the result a program")

    def _split(self) -> list[str]:
        """Write the kernel that sums parts, and the one that adds them."""
        self.partial = self._new_frame(f"{self.name}_partial_kernel")
        lines = ["    split = tl.program_id(1)"]
        scope = Scope(lines, "    ")
        for name, numbers in self.plan.sums:
            scope.say(f"part = tl.cdiv(tl.cdiv({self._size(name)}, BLOCK_K), tl.num_programs(1)) * BLOCK_K")
            self._loop(scope, self.space.axis(name), numbers, "split * part", f"tl.minimum({self._size(name)}, split * part + part)")
        for number, acc in enumerate(self.sums):
            lines.append(f"    tl.store({self._part('split.to(tl.int64)', number)}, {acc}, mask=mask_m & mask_n)")
        pid = "    pid = tl.program_id(0)"
        text = self.partial.finish([*self.place.counts(), pid, *self.place.of_pid(grouped=True), *lines])
        first = self._kernel(self.partial, text, ["parts_ptr"], "A part of the sums of one tile a program")
        self.last = self._new_frame(f"{self.name}_kernel")
        lines = [f"    {acc} = tl.zeros([BLOCK_M, BLOCK_N], dtype=tl.float32)" for acc in self.sums]
        # from one part to the next by 32 bits, since no part is longer than a result
        lines += [f"    parts = parts_ptr + {self._in_part()}", "    for _ in range(SPLIT_K):"]
        for acc in self.sums:
            lines += [f"        {acc} += tl.load(parts, mask=mask_m & mask_n, other=0.0)", f"        parts += {self._part_size()}"]
        # before the place of the tile is written: only then is known which parts of a position it reads and writes by
        lines += self._epilogue()
        text = self.last.finish([*self.place.counts(), pid, *self.place.of_pid(grouped=False), *lines])
        return [*first, "", "", *self._kernel(self.last, text, ["parts_ptr"], "Adds the parts of one tile in order")]

    def _part_size(self) -> str:
        """Write how many elements a part of one sum has."""
        size = self.place.sizes()
        return f"{size['outer']} * {size['rows']} * {size['cols']}" if self.batched else f"{size['rows']} * {size['cols']}"

    def _in_part(self) -> str:
        """Write where a tile lies in a part."""
        size = self.place.sizes()
        batch = f"batch * ({size['rows']} * {size['cols']}) + " if self.batched else ""
        return f"{batch}off_m * {size['cols']} + off_n"

    def _part(self, split: str, number: int) -> str:
        """Write where a tile of one part of one sum lies."""
        which = f"{split} * {len(self.sums)} + {number}" if len(self.sums) > 1 else split
        return f"parts_ptr + ({which}) * ({self._part_size()}) + {self._in_part()}"

    def _loop(self, scope: Scope, inner: Axis, numbers: tuple[int, ...], begin: str, end: str) -> None:
        """Write the loop of the products over one sum."""
        products = [self.plan.products[number] for number in numbers]
        atoms = frozenset(atom for each in products for atom in (*each.inner, *(() if each.stacked is None else (each.stacked,))))
        ahead = {side: Scope(scope.lines, scope.indent, scope) for side in SIDES}
        for number in numbers:
            scope.say(f"{self.sums[number]} = tl.zeros([BLOCK_M, BLOCK_N], dtype=tl.float32)")
        for side in SIDES:
            with self.tiles.along({}):
                for each in products:
                    for expr in getattr(each, side):
                        self.tiles.before(ahead[side], expr, atoms)
        scope.say(f"for k in range({begin}, {end}, BLOCK_K):")
        tiles: dict[tuple[str, int, int], str] = {}
        for side, along in SIDES.items():
            self._side(Scope(scope.lines, scope.indent + "    ", ahead[side]), side, along, inner, numbers, atoms, tiles)
        loop = scope.nested()
        for number in numbers:
            self._multiply(loop, number, tiles)

    def _side(
        self,
        loop: Scope,
        side: str,
        along: str,
        inner: Axis,
        numbers: tuple[int, ...],
        atoms: frozenset[int],
        tiles: dict[tuple[str, int, int], str],
    ) -> None:
        """Write the tiles of one side of all products over one sum, equal ones once; `tiles` gets their names."""
        position, mask = f"{side}_k", f"{side}_there"
        loop.say(f"{position} = k + {along}")
        loop.say(f"{mask} = {position} < {self._size(inner.name)}")
        self._read_once(loop, side, inner, numbers)
        made: dict[tuple[int, int, str], str] = {}
        with self.tiles.along({inner.name: (position, mask)}):
            self.tiles.parts(loop, inner)
            for number in numbers:
                product = self.plan.products[number]
                if side == "left" and self._read_neighbours(loop, number, inner, tiles):
                    continue
                for place, expr in enumerate(getattr(product, side)):
                    key = (expr, place if self._is_stacked(product, expr) else 0, product.dtype)
                    if key not in made:
                        made[key] = f"{side}_{len(made)}" if self._tiles_of(side, numbers) > 1 else side
                        self._tile(loop, made[key], product, expr, place, atoms, mask)
                    tiles[side, number, place] = made[key]

    def _read_once(self, loop: Scope, side: str, inner: Axis, numbers: tuple[int, ...]) -> None:
        """Read what is the same for a whole step once for each row or column of its tile, such as the scale of a group."""
        exprs = [expr for number in numbers for expr in getattr(self.plan.products[number], side)]
        found = loads_by_run(self.body.b, exprs, inner)
        if not found or not lies_within(self.body.b, inner, int(self.parameters["BLOCK_K"])):
            return
        self.runs[inner.name] = inner.groups[-1]
        with self.tiles.along({inner.name: ("k", "")}):
            self.tiles.parts(loop, inner)
            for expr in found:
                self.body.assign(loop, expr)

    def _read_neighbours(self, loop: Scope, number: int, inner: Axis, tiles: dict[tuple[str, int, int], str]) -> bool:
        """Read neighbours that stand in several tiles of a left operand together, and say whether they were."""
        product = self.plan.products[number]
        access = neighbours_of(self.plan, self.body.b, product, inner)
        if access is None:
            return False
        count, wide = len(product.left), self.body.names.fresh("left_wide")
        others = [axis for axis in self.space.axes if axis.name not in (inner.name, STACKED)]
        address = " + ".join([f"{access.name}_ptr", *filter(None, (self.space.along(access, axis) for axis in others)), wide])
        masks = [self.frame.masks[axis.name] for axis in others if axis.name in self.frame.masks and set(axis.atoms) & set(access.strides)]
        inside = " & ".join([*masks, f"({wide} < {count} * {self._size(inner.name)})"])
        loop.say(f"{wide} = {count} * k + tl.arange(0, {count} * BLOCK_K)[None, :]")
        load = f"tl.load({address}, mask={inside}, other=0.0){'' if access.meta.dtype == product.dtype else f'.to(tl.{product.dtype})'}"
        tiles.update({("left", number, place): name for place, name in enumerate(self._parted(loop, load, count))})
        return True

    def _parted(self, loop: Scope, text: str, count: int) -> list[str]:
        """Part a tile into those of every so many columns: the even ones and the odd ones, and each of these again."""
        if count == 1:
            return [text]
        halves = [self.body.names.fresh(f"left_{word}") for word in ("even", "odd")]
        loop.say(f"{', '.join(halves)} = tl.split(tl.reshape({text}, [BLOCK_M, {_times(count // 2, 'BLOCK_K')}, 2]))")
        parted = [self._parted(loop, half, count // 2) for half in halves]
        return [name for pair in zip(*parted, strict=True) for name in pair]

    def _tile(self, loop: Scope, name: str, product: Product, expr: int, place: int, atoms: frozenset[int], mask: str) -> None:
        """Write one tile; what does not depend on the position in a stack is written once for all of its positions."""
        if product.stacked is not None:
            self.tiles.before(loop, expr, frozenset({product.stacked}))
        at_place = Scope(loop.lines, loop.indent, loop)
        places = {STACKED: (str(place), "")} if product.stacked is not None else {}
        names = self.body.variables
        with self.tiles.along(places):
            self.body.variables = {} if places else names
            at_place.say(f"{name} = {self.tiles.tile(at_place, expr, product.dtype, atoms, mask)}")

    def _is_stacked(self, product: Product, expr: int) -> bool:
        atoms = set(self.body.b.atoms.leaves(tuple(self.body.b.exprs[expr].atoms)))
        return product.stacked in atoms

    def _tiles_of(self, side: str, numbers: tuple[int, ...]) -> int:
        """Count the tiles of one side in a step."""
        return len(
            {(expr, place, self.plan.products[n].dtype) for n in numbers for place, expr in enumerate(getattr(self.plan.products[n], side))}
        )

    def _multiply(self, loop: Scope, number: int, tiles: dict[tuple[str, int, int], str]) -> None:
        product, acc = self.plan.products[number], self.sums[number]
        precision = str(self.parameters["precision"]) if product.dtype == "float32" else ""
        for place in range(len(product.left)):
            pair = f"{tiles['left', number, place]}, {tiles['right', number, place]}"
            loop.say(added_product(acc, pair, precision, chunked=product.chunked))

    def _epilogue(self) -> list[str]:
        """Write the factors of the sums, what follows them, and the stores."""
        lines: list[str] = []
        tail = Scope(lines, "    ")
        for product, acc in zip(self.plan.products, self.sums, strict=True):
            for factor in product.factors:
                tail.say(f"{acc} *= {self.body.assign(tail, factor)}")
            tail.names[product.expr] = acc
        for output, access in zip(self.space.kernel.outputs, self.writes, strict=True):
            self.frame.store(tail, access, self.body.assign(tail, output.expr))
        return lines

    def _size(self, name: str) -> str:
        return self.space.monomial(self.space.axis(name).atoms)

    def _kernel(self, frame: Frame, text: list[str], extra: list[str], title: str) -> list[str]:
        own, count = frame.signature(CONSTANTS), len(frame.tensors())
        return [
            "@triton.jit",
            *block(f"def {frame.name}", [*own[:count], *extra, *own[count:]], ":"),
            f'    """{title}: {summary(self.space.kernel, self.reads, self.writes)}."""',
            *text,
        ]

    def _host(self) -> list[str]:
        known: dict[str, tuple[int, ...]] = {}
        device, p = self.reads[0].name, self.parameters
        for axis in self.space.axes:
            if axis.name != STACKED:
                self.space.used.setdefault(axis.size_name, axis.atoms)
        lines = [f"{access.name} = {access.name}.contiguous()" for access in self.reads if access.may_need_copy]
        lines += self.last.size_lines(known)
        lines += [allocation(self.space, access, known, device) for access in self.writes]
        lines += guard(self.space, self.plan.accesses)
        for run in self.runs.values():
            lines.append(f'assert ({host_size(self.space, run, known)}) % {p["BLOCK_K"]} == 0, "a step lies within one group"')
        batch = "n_outer * " if self.batched else ""
        tiles = f"{batch}triton.cdiv(n_rows, {p['BLOCK_M']}) * triton.cdiv(n_cols, {p['BLOCK_N']})"
        constants: dict[str, object] = {name: p[name] for name in ("BLOCK_M", "BLOCK_N", "BLOCK_K", "GROUP_M")}
        launch = [f"num_warps={p['num_warps']}", f"num_stages={p['num_stages']}"]
        if self.splits == 1:
            lines += [f"grid = ({tiles},)", *self._call(self.last, [], constants, launch)]
        else:
            rows, cols = COMBINED
            shape = f"({self.splits * len(self.sums)}, {'n_outer, ' if self.batched else ''}n_rows, n_cols)"
            again: dict[str, object] = {"BLOCK_M": rows, "BLOCK_N": cols, "SPLIT_K": self.splits}
            lines += [
                f"parts = torch.empty({shape}, dtype=torch.float32, device={device}.device)",
                f"grid = ({tiles}, {self.splits})",
                *self._call(self.partial, ["parts"], constants, launch),
                f"grid = ({batch}triton.cdiv(n_rows, {rows}) * triton.cdiv(n_cols, {cols}),)",
                *self._call(self.last, ["parts"], again, ["num_warps=4"]),
            ]
        lines.append("return " + ", ".join(access.name for access in self.writes))
        result = "torch.Tensor" if len(self.writes) == 1 else f"tuple[{', '.join(['torch.Tensor'] * len(self.writes))}]"
        return [*block(f"def {self.name}", self.last.host_parameters(lines), f" -> {result}:"), *("    " + line for line in lines)]

    def _call(self, frame: Frame, extra: list[str], constants: dict[str, object], launch: list[str]) -> list[str]:
        own, count = frame.call_arguments(constants), len(frame.tensors())
        return block(f"{frame.name}[grid]", [*own[:count], *extra, *own[count:], *launch], "")

    def _load(self, scope: Scope, expr: int) -> str:
        access = self.reads[self.body.b.exprs[expr].extra]
        return self.body.bind(scope, expr, self.frame.load_text(access))


def _times(count: int, name: str) -> str:
    return name if count == 1 else f"{count} * {name}"
