"""One stage of experts: the kernel of its grouped products with what follows them, and its launch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tools.codegen.ir.grouped import Columns, Rows, Rowwise, Stage, Weight
from tools.codegen.ir.kernel import Kernel
from tools.codegen.templates.shared.body import Body
from tools.codegen.templates.shared.frame import block, conversion, shape_words
from tools.codegen.templates.shared.iteration_space import Space
from tools.codegen.templates.shared.naming import Names, Scope

if TYPE_CHECKING:
    from tools.codegen.templates.experts.emit import _Writer

HALVES = ("float16", "bfloat16")
ROW = {Rows.ROW: "token", Rows.PAIR: "pair", Rows.POSITION: "position"}
CONSTANTS = ("PLACES", "EXPERTS", "LANES", "EVEN", "BLOCK_M", "BLOCK_N", "BLOCK_K", "STAGES")
LOCALS = (
    "left", "left_tile", "right_tile", "at", "position", "pair", "token", "expert", "lanes", "begins", "ends", "tiles", "tile", "mask_m",
    "mask_n", "mask_k", "off_n", "off_k", "pid", "pid_n", "tiles_n", "before", "begin", "end", "start", "n_inner", "n_cols", "table",
)  # fmt: skip


class StageWriter:
    """Writes one stage."""

    def __init__(self, whole: _Writer, place: int, stage: Stage) -> None:
        """Take the region's writer, the stage's number and the stage."""
        self.whole, self.stage = whole, stage
        self.name = f"{whole.name}_stage_{place}_kernel"
        self.names = Names((*LOCALS, *CONSTANTS))
        self.helpers: dict[str, None] = {}
        self.pointers: dict[str, str] = {}
        """Of the kernel, with what the host passes."""
        self.numbers: dict[str, str] = {}
        self.has_table = False
        self.bases: dict[Weight, str] = {}
        self.accumulators: dict[str, str] = {}

    def temporary(self, row: Rowwise) -> str:
        """Name what the host keeps for a value that a stage leaves."""
        return f"{row.name}_sorted" if row is not self.whole.grouped.value else "parts"

    def kernel(self) -> list[str]:
        """Write the kernel."""
        lines: list[str] = []
        scope = Scope(lines, "    ")
        self._find_tile(scope)
        scope.say("if expert < EXPERTS:")
        inside = scope.nested()
        self._rows(inside)
        self._products(inside)
        self._store(inside)
        words = ", ".join(shape_words(product.right.meta) for product in self.stage.products)
        results = ", ".join(shape_words(result.meta) for result in self.stage.results)
        extra = ["table_ptr"] if self.has_table else []
        parameters = [*self.pointers, "order_ptr", "begins_ptr", *extra, "n_inner", "n_cols", *self.numbers]
        return [
            "@triton.jit",
            *block(f"def {self.name}", [*parameters, *(f"{name}: tl.constexpr" for name in CONSTANTS)], ":"),
            f'    """A tile of one expert\'s rows a program: {shape_words(self.stage.left.meta)} by {words} of each -> {results}."""',
            *lines,
        ]

    def host(self) -> list[str]:
        """Write the launch, and what its results are kept in."""
        whole, p = self.whole, self.whole.parameters
        device = f"{whole.given[whole.grouped.chosen]}.device"
        n_inner, n_cols = whole.size(self.stage.summed), whole.size(self.stage.width)
        lines = [f"n_inner, n_cols = {n_inner}, {n_cols}"]
        for result in self.stage.results:
            lines.append(f"{self.temporary(result)} = torch.empty((n_pairs, n_cols), dtype=torch.{result.meta.dtype}, device={device})")
        table = ["table"] if self.has_table else []
        constants = {
            "PLACES": whole.places,
            "EXPERTS": whole.grouped.experts,
            "LANES": whole.lanes,
            "EVEN": f"n_inner % {p['BLOCK_K']} == 0 and n_cols % {p['BLOCK_N']} == 0",
            **{name: p[name] for name in ("BLOCK_M", "BLOCK_N", "BLOCK_K")},
            "STAGES": p["num_stages"],
        }
        given = [*self.pointers.values(), "order", "begins", *table, "n_inner", "n_cols", *self.numbers.values()]
        given += [f"{name}={value}" for name, value in constants.items()]
        lines.append(f"grid = (tiles * triton.cdiv(n_cols, {p['BLOCK_N']}),)")
        lines += block(f"{self.name}[grid]", [*given, f"num_warps={p['num_warps']}"], "")
        return lines

    def _find_tile(self, scope: Scope) -> None:
        """Write how a program finds its expert: the number of those whose tiles all come before its own."""
        for line in (
            "pid = tl.program_id(0)",
            "tiles_n = tl.cdiv(n_cols, BLOCK_N)",
            "tile, pid_n = pid // tiles_n, pid % tiles_n",
            "lanes = tl.arange(0, LANES)",
            "begins = tl.load(begins_ptr + lanes, mask=lanes < EXPERTS, other=0)",
            "ends = tl.load(begins_ptr + lanes + 1, mask=lanes < EXPERTS, other=0)",
            "tiles = (ends - begins + BLOCK_M - 1) // BLOCK_M",
            "expert = tl.sum((tl.cumsum(tiles, 0) <= tile).to(tl.int32), axis=0)",
        ):
            scope.say(line)

    def _rows(self, scope: Scope) -> None:
        for line in (
            "before = tl.sum(tl.where(lanes < expert, tiles, 0), axis=0)",
            "begin = tl.sum(tl.where(lanes == expert, begins, 0), axis=0)",
            "end = tl.sum(tl.where(lanes == expert, ends, 0), axis=0)",
            "position = begin + (tile - before) * BLOCK_M + tl.arange(0, BLOCK_M)",
            "mask_m = position < end",
            # rows beyond the last are the first one's again: they are read, and not written
            "position = tl.where(mask_m, position, begin).to(tl.int64)",
            "pair = tl.load(order_ptr + position).to(tl.int64)",
            "token = pair // PLACES",
            "off_n = pid_n * BLOCK_N + tl.arange(0, BLOCK_N)",
            "mask_n = off_n < n_cols",
            "off_k = tl.arange(0, BLOCK_K)",
        ):
            scope.say(line)

    def _products(self, scope: Scope) -> None:
        stage, precision = self.stage, self.whole.parameters["precision"]
        left = self._pointer(stage.left)
        scope.say(f"left = {left} + {ROW[stage.left.rows]}[:, None] * n_inner + off_k[None, :]")
        rights = []
        for place, product in enumerate(stage.products):
            base, right = self._base(scope, product.right), f"right_{place}"
            column = self._column(product.columns)
            if product.along:
                scope.say(f"{right} = {base} + {column}[None, :] * n_inner + off_k[:, None]")
                rights.append((right, "BLOCK_K"))
            else:
                full = self._number(f"n_full_{place}", self.whole.size(product.right.meta.shape[1]))
                scope.say(f"{right} = {base} + off_k[:, None] * {full} + {column}[None, :]")
                rights.append((right, f"BLOCK_K * {full}"))
            self.accumulators[product.name] = self.names.fresh("acc" if len(stage.products) == 1 else f"acc_{place}")
            scope.say(f"{self.accumulators[product.name]} = tl.zeros([BLOCK_M, BLOCK_N], tl.float32)")
        scope.say("for start in tl.range(0, n_inner, BLOCK_K, num_stages=STAGES):")
        loop = scope.nested()
        loop.say("mask_k = off_k < n_inner - start")
        self._tile(loop, "left_tile", "left", "mask_k[None, :]")
        loop.say("left += BLOCK_K")
        for (right, step), acc in zip(rights, self.accumulators.values(), strict=True):
            self._tile(loop, "right_tile", right, "mask_k[:, None] & mask_n[None, :]")
            loop.say(f"{right} += {step}")
            if stage.left.meta.dtype in HALVES:
                loop.say(f"{acc} = tl.dot(left_tile, right_tile, {acc})")
            else:
                loop.say(f'{acc} += tl.dot(left_tile, right_tile, input_precision="{precision}")')

    def _tile(self, scope: Scope, name: str, pointers: str, mask: str) -> None:
        scope.say(f"{name} = tl.load({pointers}) if EVEN else tl.load({pointers}, mask={mask}, other=0.0)")

    def _column(self, columns: Columns) -> str:
        """Write which column of a matrix belongs to each of the tile's."""
        text = f"off_n * {columns.by}" if columns.by != 1 else "off_n"
        if columns.start:
            literal = len(set(columns.start)) == 1
            start = str(columns.start[0]) if literal else self._number(f"first_{len(self.numbers)}", self.whole.size(columns.start))
            text = f"{start} + {text}"
        return text if text == "off_n" else f"({text})"

    def _number(self, name: str, host: str) -> str:
        known = next((own for own, text in self.numbers.items() if text == host), None)
        self.numbers[known or name] = host
        return known or name

    def _pointer(self, row: Rowwise) -> str:
        host = self.temporary(row) if row.ref is None else self.whole.given[row.ref]
        return self._named_pointer(host)

    def _named_pointer(self, host: str) -> str:
        self.pointers[f"{host}_ptr"] = host
        return f"{host}_ptr"

    def _base(self, scope: Scope, weight: Weight) -> str:
        """Write where an expert's own matrix or vector begins."""
        if weight not in self.bases:
            if weight.is_common:
                self.bases[weight] = self._named_pointer(self.whole.given[weight.refs[0]])
            else:
                name = self.bases[weight] = self.names.fresh(f"matrix_{len(self.bases)}")
                if weight in self.whole.tables:
                    self.has_table = True
                    row = self.whole.tables.index(weight)
                    scope.say(f"{name} = tl.load(table_ptr + {row} * EXPERTS + expert).to(tl.pointer_type(tl.{weight.meta.dtype}))")
                    scope.say(f"{name} = tl.multiple_of({name}, 16)")
                else:
                    pointer = self._named_pointer(self.whole.given[weight.refs[0]])
                    host = " * ".join(self.whole.size(sizes) for sizes in weight.meta.shape) or "1"
                    scope.say(f"{name} = {pointer} + expert.to(tl.int64) * {self._number(f'n_each_{len(self.numbers)}', host)}")
        return self.bases[weight]

    def _store(self, scope: Scope) -> None:
        values = dict(self.accumulators)
        if self.stage.epilogue is not None:
            values |= self._epilogue(scope, self.stage.epilogue)
        for result in self.stage.results:
            row = "pair" if result is self.whole.grouped.value else "position"
            pointer = self._named_pointer(self.temporary(result))
            scope.say(f"at = {pointer} + {row}[:, None] * n_cols + off_n[None, :]")
            scope.say(f"tl.store(at, {values[result.name]}, mask=mask_m[:, None] & mask_n[None, :])")

    def _epilogue(self, scope: Scope, kernel: Kernel) -> dict[str, str]:
        """Write what is made of the products, element by element."""
        texts: dict[str, str] = {}

        def load(inner: Scope, expr: int) -> str:
            name = kernel.builder.loads[kernel.builder.exprs[expr].extra].ref.name
            if name not in texts:
                texts[name] = self.accumulators.get(name) or self._load(scope, name)
            return texts[name]

        def reduce(inner: Scope, expr: int) -> str:
            raise AssertionError("nothing is reduced after a product of experts")

        body = Body(Space(kernel, (), ()), self.names, load, reduce)
        found = {output.ref.name: body.assign(scope, output.expr) for output in kernel.outputs}
        self.helpers |= body.helpers
        return found

    def _load(self, scope: Scope, name: str) -> str:
        """Write the load of what the epilogue reads beside products."""
        vector = next((one for one in self.stage.vectors if one.name == name), None)
        variable = self.names.fresh(name)
        if vector is not None:
            base, meta = self._base(scope, vector.weight), vector.weight.meta
            if meta.shape:
                text = f"tl.load({base} + {self._column(vector.columns)}, mask=mask_n, other=0.0)[None, :]"
            else:
                text = f"tl.load({base})"
            scope.say(f"{variable} = {text}{conversion(meta.dtype)}")
            return variable
        row = next(one for one in self.stage.rows if one.name == name)
        pointer, index = self._pointer(row), f"{ROW[row.rows]}[:, None]"
        if row.width == (1,) * len(row.width):
            scope.say(f"{variable} = tl.load({pointer} + {index}){conversion(row.meta.dtype)}")
        else:
            mask = "mask_n[None, :]"
            scope.say(f"{variable} = tl.load({pointer} + {index} * n_cols + off_n[None, :], mask={mask}){conversion(row.meta.dtype)}")
        return variable
