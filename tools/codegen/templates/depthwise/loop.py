"""The sums of a depthwise convolution: a lane that walks down the input, or that gathers each element of the result by itself."""

from __future__ import annotations

import math
from dataclasses import dataclass

from tools.codegen.ir.geometry import Depthwise
from tools.codegen.templates.depthwise.layout import UNROLLED, open_rows, pairs, reach, sum_text
from tools.codegen.templates.depthwise.quads import quad_lines
from tools.codegen.templates.shared.access import Access
from tools.codegen.templates.shared.frame import conversion
from tools.codegen.templates.shared.naming import Scope

LANES = "[BLOCK_M // ROWS * BLOCK_N]"


@dataclass(frozen=True)
class DepthwiseLoop:
    """Writes the sums of one depthwise convolution."""

    depthwise: Depthwise
    source: Access
    weight: Access
    image: str
    """Which image of the input, counted over batch and channels, a program looks at."""
    channel: str
    """Channel of the result; nothing where it is the only one."""
    depth: str
    """Place in a volume's depth; of planes and lines nothing."""

    @property
    def rank(self) -> int:
        """Spatial dimensions."""
        return len(self.depthwise.size)

    @property
    def letters(self) -> str:
        """Their names."""
        return "dhw"[-self.rank :]

    @property
    def count(self) -> int:
        """Elements of the kernel."""
        return math.prod(self.depthwise.size)

    def walk(self, scope: Scope) -> None:
        """Write a lane's way down the input: each of its rows is added to all the rows of the result that are still open."""
        d, n_open = self.depthwise, open_rows(self.depthwise)
        self._taps(scope)
        for place in range(self.rank - 2, self.rank):
            letter, before = self.letters[place], self._before(place) + (self._odd if place == self.rank - 1 else 0)
            scope.say(f"from_{letter} = {_start({'h': 'first', 'w': 'off_n'}[letter], d.stride[place], before)}")
        extent = " * ".join(f"in_{letter}" for letter in self.letters)
        scope.say(f"base = {self.source.name}_ptr + {self.image} * ({extent}) + from_w")
        for age in range(n_open):
            scope.say(f"acc_{age} = tl.zeros({LANES}, tl.float32)")
        scope.say("done = ()")
        rows = scope.nested()
        scope.say(f"for step in tl.static_range(ROWS{f' + {n_open - 1}' if n_open > 1 else ''}):")
        self._rows(rows)
        if n_open > 1:
            rows.say(f"if step >= {n_open - 1}:")
        (rows.nested() if n_open > 1 else rows).say(f"done = done + (acc_{n_open - 1},)")
        for age in reversed(range(1, n_open)):
            rows.say(f"acc_{age} = acc_{age - 1}")
        rows.say(f"acc_0 = tl.zeros({LANES}, tl.float32)")

    @property
    def _first_tap(self) -> str:
        """Write where the kernel of the channel begins."""
        return f"above = {self.weight.name}_ptr" + (f" + {self.channel} * {self.count}" if self.channel else "")

    def _taps(self, scope: Scope) -> None:
        """Load the kernel once; a transpose meets its elements in the order of their numbers turned round."""
        scope.say(self._first_tap)
        scope.say("taps = ()")
        scope.say(f"for place in tl.static_range({self.count}):")
        place = f"({self.count - 1} - place)" if self.depthwise.transposed else "place"
        scope.nested().say(f"taps = taps + (tl.load(above + {place}){conversion(self.weight.meta.dtype)},)")

    def _before(self, place: int) -> int:
        """Count the elements before a result's place at which its kernel begins."""
        d = self.depthwise
        return reach(d, place) - 1 - d.padding[place] if d.transposed else d.padding[place]

    @property
    def _odd(self) -> int:
        """Count the elements before a kernel's row that its first pair holds: pairs begin at even places."""
        return self.depthwise.padding[-1] % 2 if pairs(self.depthwise) else 0

    def _leaves(self, place: int) -> bool:
        """Whether a kernel may reach beyond the input along a dimension."""
        return self.depthwise.transposed or self.depthwise.padding[place] > 0

    def _rows(self, scope: Scope) -> None:
        """Write what is done with the rows of the input that a step comes to: as many as the stride."""
        d, stride = self.depthwise, self.depthwise.stride[-2]
        if stride > 1:
            scope.say(f"for turn in tl.static_range({stride}):")
            scope = scope.nested()
        scope.say(f"at_h = from_h + {'step' if stride == 1 else f'(step * {stride} + turn)'}")
        # where each place in a row is tested, columns beyond the result's need no test of their own
        tests = [] if self._leaves(self.rank - 1) else ["mask_n"]
        tests += ["(at_h >= 0)"] if self._leaves(self.rank - 2) else []
        scope.say(f"in_row = {' & '.join([*tests, '(at_h < in_h)']) if tests else 'at_h < in_h'}")
        line = "at_h * in_w"
        if self.rank == 3:
            scope.say(f"for step_d in tl.static_range({d.size[0]}):")
            scope = scope.nested()
            # as a block: Triton's interpreter makes a number of a block's mask and a single truth value
            scope.say(f"at_d = tl.zeros([1], tl.int32) + {_start(self.depth, d.stride[0], self._before(0))}{self._dilated('step_d', 0)}")
            line = "(at_d * in_h + at_h) * in_w"
        in_row, here = "in_row", self._dilated("step_w") + (" + 1" if self._odd else "")
        if self.rank == 3 and self._leaves(0):
            in_row = "in_row & (at_d >= 0) & (at_d < in_d)"
        scope.say(f"line = base + {line}")
        inside = in_row
        if self._leaves(self.rank - 1):
            scope.say("# as a number without a sign, a place before the row's beginning lies beyond its end")
            scope.say(f"end = tl.where({in_row}, in_w, 0).to(tl.uint32)")
            inside = f"(from_w{here}).to(tl.uint32) < end"
        elif in_row != "in_row":
            scope.say(f"inside = {in_row}")
            inside = "inside"
        if pairs(d):
            scope.say("if PAIRS:")
            self._pairs(scope.nested(), "" if self._leaves(self.rank - 1) else inside)
            scope.say("else:")
            scope = scope.nested()
        scope.say(f"for step_w in tl.static_range({d.size[-1]}):")
        scope = scope.nested()
        scope.say(f"here = tl.load(line{here}, mask={inside}, other=0.0){conversion(self.source.meta.dtype)}")
        self._add(scope, "here")

    def _pairs(self, scope: Scope, inside: str) -> None:
        """Write how a row is read in pairs of neighbours; `inside` is the test of a row whose places need none."""
        width = self.depthwise.size[-1]
        scope.say(f"for step_w in tl.static_range({pairs(self.depthwise)}):")
        scope = scope.nested()
        if not inside:
            # rows of even length hold both or neither
            scope.say("inside = (from_w + step_w * 2).to(tl.uint32) < end")
        scope.say("pair = line[:, None] + (step_w * 2 + tl.arange(0, 2)[None, :])")
        to_float = conversion(self.source.meta.dtype)
        scope.say(f"even, odd = tl.split(tl.load(pair, mask={inside or 'inside'}[:, None], other=0.0){to_float})")
        for name, step in (("even", sum_text("step_w * 2", -self._odd)), ("odd", sum_text("step_w * 2", 1 - self._odd))):
            test = "step_w > 0" if self._odd and name == "even" else ""
            if name == "odd" and 2 * pairs(self.depthwise) - self._odd > width:
                test = f"{step} < {width}"
            if test:
                scope.say(f"if {test}:")
            self._add(scope.nested() if test else scope, name, step)

    def _add(self, scope: Scope, here: str, step: str = "step_w") -> None:
        """Write how an element is added to each open row; the older the row, the further down its kernel."""
        d, stride, dilation = self.depthwise, self.depthwise.stride[-2], self.depthwise.dilation[-2]
        for age in range(open_rows(d)):
            below, inner = age * stride, scope
            if stride == 1 and below % dilation:
                continue
            place = sum_text("turn", below)
            tests = [f"{place} < {reach(d, -2)}"] if below + stride > reach(d, -2) else []
            tests += [f"{f'({place})' if below else place} % {dilation} == 0"] if dilation > 1 else []
            if stride > 1 and tests:
                scope.say(f"if {' and '.join(tests)}:")
                inner = scope.nested()
            tap = " + ".join([*self._above(below), step])
            inner.say(f"acc_{age} = tl.fma({here}, taps[{tap}], acc_{age})")

    def _above(self, below: int) -> list[str]:
        """Count the elements of the kernel before the row that is `below` rows of the input under its first, and a turn more."""
        d, width, dilation = self.depthwise, self.depthwise.size[-1], self.depthwise.dilation[-2]
        if d.stride[-2] == 1:
            number = below // dilation * width
            return [f"step_d * {d.size[1] * width}"] * (self.rank == 3) + [str(number)] * (number > 0)
        row = f"({sum_text('turn', below)})" if below else "turn"
        row += f" // {dilation}" if dilation > 1 else ""
        return [f"{f'(step_d * {d.size[1]} + {row})' if self.rank == 3 else row} * {width}"]

    def _dilated(self, step: str, place: int = -1) -> str:
        """Write a step's distance from the first."""
        dilation = self.depthwise.dilation[place]
        return f" + {step}" + (f" * {dilation}" if dilation != 1 else "")

    def quads(self, scope: Scope, lanes: str) -> None:
        """Write the sums of four neighbours in one line."""
        scope.say(f"base = {self.source.name}_ptr + {self.image} * in_w")
        scope.say(self._first_tap)
        for line in quad_lines(self.depthwise, lanes, conversion(self.source.meta.dtype), conversion(self.weight.meta.dtype)):
            scope.say(line)
        scope.say("done = done + (acc,)")

    def gather(self, scope: Scope) -> None:
        """Write the loops over the kernel's elements for one row of the result."""
        d, letters = self.depthwise, self.letters
        walk = "tl.static_range" if self.count <= UNROLLED else "range"
        extent = " * ".join(f"in_{letter}" for letter in letters)
        scope.say(f"base = {self.source.name}_ptr + {self.image} * {extent if self.rank == 1 else f'({extent})'}")
        scope.say(self._first_tap)
        scope.say(f"acc = tl.zeros({LANES}, tl.float32)")
        row, tests, there, step = scope, ["mask_m", "mask_n"], "", ""
        for place, letter in enumerate(letters):
            scope.say(f"for step_{letter} in {walk}({d.size[place]}):")
            scope = scope.nested()
            tests += self._position(scope, place, letter)
            there = f"at_{letter}" if not there else f"({there} * in_{letter} + at_{letter})"
            step = f"step_{letter}" if not step else f"({step} * {d.size[place]} + step_{letter})"
            if place == self.rank - 2:
                scope.say(f"line = base + {there} * in_w")
                scope.say("# as a number without a sign, a place before the row's beginning lies beyond its end")
                scope.say(f"end = tl.where({' & '.join(tests)}, in_w, 0).to(tl.uint32)")
                tests = []
        if self.rank > 1:
            there, tests = "line + at_w", [*(test for test in tests if "at_w" not in test), "(at_w.to(tl.uint32) < end)"]
        else:
            there = f"base + {there}"
        scope.say(f"inside = {_bare(tests[0]) if len(tests) == 1 else ' & '.join(tests)}")
        to_float = conversion(self.source.meta.dtype)
        scope.say(f"here = tl.load({there}, mask=inside, other=0.0){to_float}")
        mask = ", mask=mask_m, other=0.0" if self.rank == 1 else ""
        scope.say(f"tap = tl.load(above + {_bare(step)}{mask}){conversion(self.weight.meta.dtype)}")
        scope.say("acc = tl.fma(here, tap, acc)")
        row.say("done = done + (acc,)")

    def _position(self, scope: Scope, place: int, letter: str) -> list[str]:
        """Write where one step lies in the input along a dimension, and return what tells whether that is inside."""
        d = self.depthwise
        offset = {"d": self.depth, "h": "off_h", "w": "off_n"}[letter]
        stride, padding = d.stride[place], d.padding[place]
        # as a block: Triton's interpreter makes a number of a block's mask and a single truth value
        block = "tl.zeros([1], tl.int32) + " if letter == "d" else ""
        spread = self._dilated(f"step_{letter}", place).removeprefix(" + ")
        if not d.transposed:
            text = offset + (f" * {stride}" if stride != 1 else "") + f" + {spread}" + (f" - {padding}" if padding else "")
            scope.say(f"at_{letter} = {block}{text}")
            return [f"(at_{letter} >= 0)", f"(at_{letter} < in_{letter})"] if padding else []
        text = f"{block}{offset}{f' + {padding}' if padding else ''} - {spread}"
        if stride == 1:
            scope.say(f"at_{letter} = {text}")
            return [f"(at_{letter} >= 0)", f"(at_{letter} < in_{letter})"]
        scope.say(f"from_{letter} = {text}")
        scope.say(f"at_{letter} = from_{letter} // {stride}")
        return [f"(from_{letter} >= 0)", f"(from_{letter} % {stride} == 0)", f"(at_{letter} < in_{letter})"]


def _start(index: str, stride: int, before: int) -> str:
    """Write where in the input the kernel of a result begins."""
    return sum_text(index if stride == 1 else f"{index} * {stride}", -before)


def _bare(text: str) -> str:
    """Leave out a sum's outermost parentheses."""
    return text[1:-1] if text.startswith("(") else text
