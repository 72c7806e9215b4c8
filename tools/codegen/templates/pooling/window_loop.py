"""The loops over a pooling's window: each element that a window looks at is loaded, tested and added to its accumulator."""

from __future__ import annotations

import math
from collections.abc import Sequence
from enum import Enum, auto

from tools.codegen.ir.expr import LoweringError
from tools.codegen.ir.geometry import PoolKind, Window
from tools.codegen.ir.sizes import power_of_two
from tools.codegen.templates.pooling.layout import LETTERS, leaves_out_padding
from tools.codegen.templates.pooling.pairs import even_and_odd, shared_out
from tools.codegen.templates.pooling.vec4 import OWN, blocks_along, bounds, helpers, quotient, shares
from tools.codegen.templates.shared.body import Body
from tools.codegen.templates.shared.iteration_space import Axis, Space
from tools.codegen.templates.shared.naming import Scope

UNROLLED = 16
"""Window elements up to which the loops are unrolled: more would bloat the code without more loads in flight."""


class Algorithm(Enum):
    """What a lane makes, and how what neighbours share is loaded."""

    FLAT = auto()
    """One element; results are numbered one by one."""
    TILE = auto()
    """One element of a tile of the result's last two dimensions."""
    PAIRS = auto()
    """One element of a tile of whole rows, which are loaded once."""
    VEC4 = auto()
    """Four neighbours, of blocks of four elements."""
    ACROSS = auto()
    """Part of one element: lanes lie along the windows of the last dimension."""


class WindowLoop:
    """Writes the loops over one window."""

    def __init__(self, window: Window, space: Space, walked: Sequence[Axis], body: Body, algorithm: Algorithm) -> None:
        """Take the window, and the axes along which its results are walked."""
        self.window, self.space, self.walked, self.body, self.algorithm = window, space, walked, body, algorithm
        self.letters = LETTERS[-len(window.size) :]
        leaves = space.kernel.builder.atoms.leaves
        self.inside, self.spatial = leaves(window.inside), leaves(window.spatial)
        self.shape = "[BLOCK]" if algorithm is Algorithm.FLAT else "[BLOCK_M, BLOCK_N]"
        if algorithm is Algorithm.ACROSS:
            self.shape = f"[BLOCK_M, BLOCK_N, {power_of_two(window.size[-1])}]"
        self.one = "[1, 1, 1]" if algorithm in (Algorithm.VEC4, Algorithm.ACROSS) else "[1, 1]"
        self.mask, self.fill = "mask", "0.0"
        """Which elements a load of the input is of, and what the others count as."""

    def write(self, scope: Scope) -> None:
        """Write the loops over the window."""
        window = self.window
        self._before(scope)
        start = '-float("inf")' if window.kind is PoolKind.MAX else "0.0"
        named = {Algorithm.PAIRS: ["evens", "odds"], Algorithm.VEC4: [f"acc_{own}" for own in OWN]}
        for name in named.get(self.algorithm, ["acc"]):
            scope.say(f"{name} = tl.full({self.shape}, {start}, tl.float32)")
        if window.position >= 0:
            scope.say(f"best = tl.full({self.shape}, -1, tl.int32)")
        counted = leaves_out_padding(window)
        if counted and self.algorithm is not Algorithm.VEC4:
            scope.say(f"count = tl.zeros({self.shape}, tl.float32)")
        total, loop = math.prod(window.size), scope
        self._bounds(scope)
        along = {Algorithm.VEC4: len(blocks_along(window)), Algorithm.ACROSS: 1}.get(self.algorithm, window.size[-1])
        steps = math.prod(window.size[:-1]) * along
        walk = "tl.static_range" if steps <= UNROLLED and not window.windows else "range"
        tests: list[str] = []
        for place in range(len(self.letters) - (self.algorithm in (Algorithm.PAIRS, Algorithm.VEC4, Algorithm.ACROSS))):
            loop = self._walk(loop, tests, place, walk)
        if self.algorithm is Algorithm.PAIRS:
            self._load_pairs(loop, tests, start)
            for line in shared_out(window, start, self._grown):
                scope.say(line)
        elif self.algorithm is Algorithm.VEC4:
            self._load_vec4(loop, tests, start)
            scope.say("acc = together(acc_0, acc_1, acc_2, acc_3)")
        elif self.algorithm is Algorithm.ACROSS:
            self._step(loop, ["mask_m & mask_n", *tests, *self._along(loop)], start, counted=False)
            self._across(scope)
        else:
            self._step(loop, ["mask_m & mask_n" if self.algorithm is not Algorithm.FLAT else "mask", *tests], start, counted)
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
        terms = self.index(self.spatial[place]) + (f" * {stride}" if stride != 1 else "")
        terms += f" + step_{letter}" + (f" * {dilation}" if dilation != 1 else "") + (f" - {padding}" if padding else "")
        scalar = self.algorithm is not Algorithm.FLAT and self.index(self.spatial[place]).startswith("outer")
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
        for line in even_and_odd(here, self._grown):
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

    def _along(self, loop: Scope) -> list[str]:
        """Write where the lanes of a window are in their row, and what holds inside the window and the input."""
        window, letter, extent = self.window, self.letters[-1], self.space.monomial((self.inside[-1],))
        size, stride, padding = window.size[-1], window.stride[-1], window.padding[-1]
        loop.say(f"along = tl.arange(0, {power_of_two(size)})[None, None, :]")
        loop.say(f"at_{letter} = cols * {stride} + along{f' - {padding}' if padding else ''}")
        tests = [f"(along < {size})"] if size != power_of_two(size) else []
        tests += [f"(at_{letter} >= 0)"] if padding else []
        return tests + ([f"(at_{letter} < {extent})"] if padding or window.ceil else [])

    def _across(self, scope: Scope) -> None:
        """Write how the lanes of a window are brought together."""
        if self.window.kind is PoolKind.MAX:
            self.body.helpers["larger"] = None
            scope.say("acc = tl.reduce(acc, 2, larger, keep_dims=True)")
        else:
            scope.say("acc = tl.sum(acc, axis=2, keep_dims=True)")

    def _grown(self, here: str, acc: str = "acc") -> str:
        return f"tl.maximum({acc}, {here}, propagate_nan=tl.PropagateNan.ALL)" if self.window.kind is PoolKind.MAX else f"{acc} + {here}"

    def _bounds(self, scope: Scope) -> None:
        """Write where the windows of an adaptive pooling begin and end: they cover the input, and neighbours may share an element."""
        for place, count in enumerate(self.window.windows):
            letter, index, extent = self.letters[place], self.index(self.spatial[place]), self.space.monomial((self.inside[place],))
            block_ = f"tl.zeros({self.one}, tl.int32) + " if self.algorithm is not Algorithm.FLAT and index.startswith("outer") else ""
            scope.say(f"first_{letter} = {block_}{index} * {extent} // {count}")
            scope.say(f"last_{letter} = {block_}(({index} + 1) * {extent} + {count - 1}) // {count}")

    def index(self, atom: int) -> str:
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
        if counted and self.algorithm is Algorithm.VEC4:
            return self._counted_vec4()
        return ["acc = acc / count"] if counted else [f"acc = acc * {1 / (self.window.divisor or total)!r}"]

    def _counted_vec4(self) -> list[str]:
        """Write the division by the elements of a window that are inside the input."""
        strides = [f" * {stride}" if stride != 1 else "" for stride in self.window.stride]
        begins = [self.index(atom) + stride for atom, stride in zip(self.spatial, strides, strict=True)]
        return quotient(self.window, self.letters, begins, [self.space.monomial((atom,)) for atom in self.inside])
