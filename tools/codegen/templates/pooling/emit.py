"""The template of pooling: one element of the result a lane, its window gathered step by step, then the pointwise operators after it.

`flat` numbers the elements of the result one by one and takes each number apart; `tile` gives a program a tile of the
result's last two dimensions, so that only the program's own number is taken apart. `pairs` is a tile of whole rows whose windows
are two elements apart: what is in memory is loaded once, neighbours together, and handed from lane to lane. `vec4` is a tile
whose windows are one element apart: a lane makes four neighbours of blocks of four, each loaded once and taken apart in registers.
"""

from __future__ import annotations

import math

from tools.codegen.ir.expr import LoweringError
from tools.codegen.ir.geometry import PoolKind, Window
from tools.codegen.ir.kernel import Kernel
from tools.codegen.templates.pooling.layout import LETTERS, OWN_NAMES, fits_pairs, fits_vec4, leaves_out_padding, pooling_layout, tile_axes
from tools.codegen.templates.pooling.pairs import halves, shared_out
from tools.codegen.templates.pooling.vec4 import OWN, blocks_along, bounds, helpers, quotient, shares
from tools.codegen.templates.shared.body import Body
from tools.codegen.templates.shared.frame import Frame, Parameters, RegionText, allocation, block, conversion, guard, summary
from tools.codegen.templates.shared.host_sizes import host_size
from tools.codegen.templates.shared.iteration_space import Axis, Space
from tools.codegen.templates.shared.naming import Names, Scope

NAME = "pooling"
UNROLLED = 16
"""Window elements up to which the loops are unrolled: more would bloat the code without more loads in flight."""


def emit(kernel: Kernel, name: str, parameters: Parameters) -> RegionText:
    """Write the kernel and its host function."""
    return _Writer(kernel, name, parameters).write()


class _Writer:
    """Writes one pooling region."""

    def __init__(self, kernel: Kernel, name: str, parameters: Parameters) -> None:
        self.name, self.parameters = name, parameters
        assert kernel.window is not None
        self.window: Window = kernel.window
        accesses, axis = pooling_layout(kernel)
        algorithm = parameters.get("algorithm", "flat")
        self.pairs = algorithm == "pairs" and fits_pairs(kernel)
        self.vec4 = algorithm == "vec4" and fits_vec4(kernel)
        self.tile = algorithm in ("tile", "pairs", "vec4") and len(axis.groups) > 1
        self.one = "[1, 1, 1]" if self.vec4 else "[1, 1]"
        axes: tuple[Axis, ...] = (axis,)
        masks, self.shape = {"elements": "mask"}, "[BLOCK]"
        if self.tile:
            axes, self.shape = tile_axes(axis), "[BLOCK_M, BLOCK_N]"
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
        self.frame = Frame(self.space, f"{name}_kernel", Names(), self.reads, self.writes, self.body, masks)

    def write(self) -> RegionText:
        """Write kernel and host function."""
        lines: list[str] = []
        scope = Scope(lines, "    ")
        self._gather(scope)
        scope.names[self.window.expr] = "acc"
        if self.window.position >= 0:
            scope.names[self.window.position] = "best"
        for output, access in zip(self.space.kernel.outputs, self.writes, strict=True):
            self.frame.store(scope, access, self.body.assign(scope, output.expr))
        head = self._tile_head() if self.tile else self._flat_head()
        text = self.frame.finish([*("    " + line for line in head), *lines])
        made = "Four neighbours a lane, acc_0 to acc_3, of blocks of four elements" if self.vec4 else "One element a lane"
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
            f"rows = ({tile}){wide} * BLOCK_M + tl.arange(0, BLOCK_M)[:, None{', None' if self.vec4 else ''}]",
            f"mask_m = rows < {self.space.monomial(rows.atoms)}",
            *self.space.parts(rows),
            *self._cols(),
            f"mask_n = cols < {self.space.monomial(cols.atoms)}",
        ]

    def _cols(self) -> list[str]:
        if self.vec4:
            quads = "quads = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)[None, :, None]"
            return [quads, "cols = quads * 4 + tl.arange(0, 4)[None, None, :]"]
        return [f"cols = {'' if self.pairs else 'tl.program_id(1) * BLOCK_N + '}tl.arange(0, BLOCK_N)[None, :]"]

    def _gather(self, scope: Scope) -> None:
        """Write the loops over the window."""
        window = self.window
        self._before(scope)
        start = '-float("inf")' if window.kind is PoolKind.MAX else "0.0"
        for name in ("evens", "odds") if self.pairs else [f"acc_{own}" for own in OWN] if self.vec4 else ("acc",):
            scope.say(f"{name} = tl.full({self.shape}, {start}, tl.float32)")
        if window.position >= 0:
            scope.say(f"best = tl.full({self.shape}, -1, tl.int32)")
        counted = leaves_out_padding(window)
        if counted and not self.vec4:
            scope.say(f"count = tl.zeros({self.shape}, tl.float32)")
        total, loop = math.prod(window.size), scope
        self._bounds(scope)
        steps = math.prod(window.size[:-1]) * len(blocks_along(window)) if self.vec4 else total
        walk = "tl.static_range" if steps <= UNROLLED and not window.windows else "range"
        tests: list[str] = []
        for place in range(len(self.letters) - (self.pairs or self.vec4)):
            loop = self._walk(loop, tests, place, walk)
        if self.pairs:
            self._load_pairs(loop, tests, start)
            for line in shared_out(window, start, self._grown):
                scope.say(line)
        elif self.vec4:
            self._load_vec4(loop, tests, start)
            scope.say("acc = together(acc_0, acc_1, acc_2, acc_3)")
        else:
            self._step(loop, ["mask_m & mask_n" if self.tile else "mask", *tests], start, counted)
        for line in self._divide(total, counted):
            scope.say(line)

    def _walk(self, loop: Scope, tests: list[str], place: int, walk: str) -> Scope:
        """Write the loop along one dimension of the window, and note what holds inside the input."""
        window, letter = self.window, self.letters[place]
        extent = self.space.monomial((self.inside[place],))
        if window.windows:
            loop.say(f"for step_{letter} in range(tl.cdiv({extent}, {window.windows[place]}) + 1):")
            loop = loop.nested()
            loop.say(f"at_{letter} = first_{letter} + step_{letter}")
            tests.append(f"(at_{letter} < last_{letter})")
            return loop
        stride, padding, dilation = window.stride[place], window.padding[place], window.dilation[place]
        loop.say(f"for step_{letter} in {walk}({window.size[place]}):")
        loop = loop.nested()
        terms = self._index(self.spatial[place]) + (f" * {stride}" if stride != 1 else "")
        terms += f" + step_{letter}" + (f" * {dilation}" if dilation != 1 else "") + (f" - {padding}" if padding else "")
        scalar = self.tile and self._index(self.spatial[place]).startswith("outer")
        # as a block: Triton's interpreter makes a number of a block's mask and a single truth value
        loop.say(f"at_{letter} = {f'tl.zeros({self.one}, tl.int32) + ' if scalar and (padding or window.ceil) else ''}{terms}")
        tests += [f"(at_{letter} >= 0)"] if padding else []
        tests += [f"(at_{letter} < {extent})"] if padding or window.ceil else []
        return loop

    def _load_pairs(self, loop: Scope, tests: list[str], start: str) -> None:
        """Write the load of whole rows, and what becomes of their even and odd places."""
        letter = self.letters[-1]
        loop.say(f"at_{letter} = tl.arange(0, 2 * BLOCK_N)[None, :]")
        loop.say(f"inside = {' & '.join(['mask_m', *tests, f'(at_{letter} < {self.space.monomial((self.inside[-1],))})'])}")
        self.mask, self.fill = "inside", start
        here = self.body.assign(Scope(loop.lines, loop.indent, loop), self.window.source)
        for line in halves(here, self._grown):
            loop.say(line)

    def _load_vec4(self, loop: Scope, tests: list[str], start: str) -> None:
        """Write the loads of blocks of four neighbours, and to which of four windows each of their elements belongs."""
        window, extent = self.window, self.space.monomial((self.inside[-1],))
        self.mask, self.fill = "inside", start
        self.body.helpers |= dict.fromkeys(helpers(window))
        direct = self.body.b.exprs[window.source].op == "load"
        for block_ in blocks_along(window):
            for line in bounds(block_, self.letters[-1], extent, tests):
                loop.say(line)
            here = self.body.assign(Scope(loop.lines, loop.indent, loop), window.source)
            if not direct:
                # what was computed of an element outside is not the element that changes nothing
                loop.say(f"{here} = tl.where(inside, {here}, {start})")
            for line in shares(window, block_, here):
                loop.say(line)

    def _grown(self, here: str, acc: str = "acc") -> str:
        return f"tl.maximum({acc}, {here}, propagate_nan=tl.PropagateNan.ALL)" if self.window.kind is PoolKind.MAX else f"{acc} + {here}"

    def _bounds(self, scope: Scope) -> None:
        """Write where the windows of an adaptive pooling begin and end: they cover the input, and neighbours may share an element."""
        for place, count in enumerate(self.window.windows):
            letter, index, extent = self.letters[place], self._index(self.spatial[place]), self.space.monomial((self.inside[place],))
            block_ = f"tl.zeros({self.one}, tl.int32) + " if self.tile and index.startswith("outer") else ""
            scope.say(f"first_{letter} = {block_}{index} * {extent} // {count}")
            scope.say(f"last_{letter} = {block_}(({index} + 1) * {extent} + {count - 1}) // {count}")

    def _index(self, atom: int) -> str:
        """Name the position along one dimension of the result."""
        for axis in self.walked:
            for place, group in enumerate(axis.groups):
                if group == (atom,):
                    self.space.parts_used |= {axis.name} if len(axis.groups) > 1 else set()
                    return axis.part(place)
        raise LoweringError("the result of the window is walked otherwise than the window moves")

    def _before(self, scope: Scope) -> None:
        """Load before the loops what does not depend on the window's element."""
        stack, seen = [self.window.source], set()
        while stack:
            expr = stack.pop()
            record = self.body.b.exprs[expr]
            if expr in seen or record.op in ("const", "size", "argument"):
                continue
            seen.add(expr)
            if not set(self.body.b.atoms.leaves(tuple(record.atoms))) & set(self.inside):
                self.body.assign(scope, expr)
            else:
                stack += record.args

    def _step(self, loop: Scope, tests: list[str], start: str, counted: bool) -> None:
        """Write what is done with one element of the window."""
        if len(tests) > 1:
            loop.say(f"inside = {' & '.join(tests)}")
        self.mask, self.fill = "inside" if len(tests) > 1 else tests[0], start
        direct = self.body.b.exprs[self.window.source].op == "load"
        here = self.body.assign(loop, self.window.source)
        if not direct and len(tests) > 1:
            # what was computed of an element outside is not the element that changes nothing
            loop.say(f"{here} = tl.where({self.mask}, {here}, {start})")
        if counted:
            loop.say("count += tl.where(inside, 1.0, 0.0)")
        if self.window.position >= 0:
            # as the reference has it: the first of equal ones, but the last NaN
            loop.say(f"better = {self.mask} & ((best < 0) | ({here} > acc) | ({here} != {here}))")
            loop.say(f"best = tl.where(better, {self._place()}, best)")
        loop.say(f"acc = {self._grown(here)}")

    def _place(self) -> str:
        """Write where in its plane an element of the input is."""
        text = ""
        for place, letter in enumerate(self.letters):
            text = f"({text} * {self.space.monomial((self.inside[place],))} + at_{letter})" if text else f"at_{letter}"
        text = text.removeprefix("(").removesuffix(")") if text.count("(") == 1 else text
        return f"({text}).to(tl.int32)" if self.space.is_wide() else text

    def _divide(self, total: int, counted: bool) -> list[str]:
        if self.window.kind is PoolKind.MAX:
            return []
        if self.window.windows:
            elements = " * ".join(f"(last_{letter} - first_{letter})" for letter in self.letters)
            return [f"acc = acc / ({elements}).to(tl.float32)"]
        if counted and self.vec4:
            return self._counted_vec4()
        return ["acc = acc / count"] if counted else [f"acc = acc * {1 / (self.window.divisor or total)!r}"]

    def _counted_vec4(self) -> list[str]:
        """Write the division by the elements of a window that are inside the input."""
        strides = [f" * {stride}" if stride != 1 else "" for stride in self.window.stride]
        begins = [self._index(atom) + stride for atom, stride in zip(self.spatial, strides, strict=True)]
        return quotient(self.window, self.letters, begins, [self.space.monomial((atom,)) for atom in self.inside])

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
        span = 2 * window.padding[place] - window.dilation[place] * (window.size[place] - 1) - 1
        span += stride - 1 if window.ceil else 0
        lines = [f"out_{letter} = ({extent} {'+' if span >= 0 else '-'} {abs(span)}) // {stride} + 1"]
        if window.ceil:
            # a window that would begin beyond the input and its padding does not count
            lines.append(f"out_{letter} -= (out_{letter} - 1) * {stride} >= {extent} + {window.padding[place]}")
        return lines

    def _load(self, scope: Scope, expr: int) -> str:
        access = self.reads[self.body.b.exprs[expr].extra]
        if not set(access.strides) & set(self.inside):
            return self.body.bind(scope, expr, self.frame.load_text(access))
        other = self.fill if expr == self.window.source else "0" if "int" in access.meta.dtype or access.meta.dtype == "bool" else "0.0"
        text = f"tl.load({self.frame.offset(access)}, mask={self.mask}, other={other}){conversion(access.meta.dtype)}"
        return self.body.bind(scope, expr, text)

    def _reduce(self, scope: Scope, expr: int) -> str:
        raise LoweringError("a pooling region has no reductions")
