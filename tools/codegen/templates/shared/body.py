"""Write expressions as Triton statements: named values for operators, short formulas inline.

A `Scope` knows which expressions already have a variable; a nested scope (a loop's body) sees its parent's variables and
keeps its own.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

from tools.codegen.ir.builder import Builder
from tools.codegen.ir.dtypes import TRITON, is_floating
from tools.codegen.ir.expr import Expr, Fold, LoweringError
from tools.codegen.ir.narrow import needless_casts
from tools.codegen.ir.sizes import literal
from tools.codegen.ir.values.magnitude import is_subnormal_nowhere
from tools.codegen.ir.values.stepped import stepped_quotients
from tools.codegen.templates.device.math import NAMES
from tools.codegen.templates.device.matrices import MATRICES
from tools.codegen.templates.shared.iteration_space import Space, piece_mask
from tools.codegen.templates.shared.naming import Names, Scope

INFIX = {
    "or": ("|", 3), "xor": ("^", 4), "and": ("&", 5), "bitor": ("|", 3), "bitxor": ("^", 4), "bitand": ("&", 5), "shift_right": (">>", 6),
    "shift_left": ("<<", 6),
    "lt": ("<", 2), "le": ("<=", 2), "gt": (">", 2), "ge": (">=", 2), "eq": ("==", 2), "ne": ("!=", 2),
    "add": ("+", 7), "sub": ("-", 7), "mul": ("*", 8), "div": ("/", 8),
    "floordiv": ("//", 8), "mod": ("%", 8),
}  # fmt: skip
"""Operators and Python's precedence for them."""
ATOM, UNARY = 10, 9
CALLS = {
    "exp_fast": "tl.exp", "log": "tl.log", "sqrt": "tl.sqrt_rn", "rsqrt": "tl.rsqrt", "sigmoid": "tl.sigmoid", "erf": "tl.erf",
    "exp2": "tl.exp2",
    "sin": "tl.sin", "cos": "tl.cos", "abs": "tl.abs", "floor": "tl.floor", "ceil": "tl.ceil", "where": "tl.where",
    "fmax": "tl.maximum", "fmin": "tl.minimum",
}  # fmt: skip
FLUSHING = {"rsqrt", "floor", "ceil"}
"""Maps whose instruction takes subnormal numbers for zero, which changes more than the last digits of a result.

Read off the code for sm_90 of Triton 3.6, whose libdevice does the same: of sine, cosine and `erf` it makes 0 of what is no larger than
1.2e-38, and of a logarithm, a root, an exponential and a quotient nothing.
"""
ALONG_ROWS = {"reduce", "scan", "order", "pick", "read", "turn", *MATRICES}
"""What the template writes itself: reductions, scans, orders, elements read by their position, tiles turned, and matrices solved."""
LONGEST = 72
"""A formula longer than this gets a variable."""


TRITON_NUMBERS = {"bool": "int1", "int32": "int32", "int64": "int64", "float32": "float32"}
"""What Triton calls the dtypes of numbers that Python works out."""


class Body:
    """Writes the expressions of one kernel."""

    def __init__(
        self,
        space: Space,
        names: Names,
        load: Callable[[Scope, int], str],
        reduce: Callable[[Scope, int], str],
        operands: Sequence[int] = (),
    ) -> None:
        """Take how the template loads a tensor (by its place) and reduces an expression, and what its products multiply besides."""
        self.space = space
        self.b: Builder = space.kernel.builder
        self.names = names
        self.load = load
        self.reduce = reduce
        self.helpers: dict[str, None] = {}
        self.arguments: dict[int, str] = {}
        self.variables: dict[int, str] = {}
        self.uses = self._count_uses(operands)
        stored = (output.expr for output in space.kernel.outputs)
        self.needless = needless_casts(self.b, [*stored, *operands], is_wide=space.is_wide())
        self.centring = frozenset(self._centring_means())
        self.stepped = stepped_quotients(self.b) - self.centring
        self.coarse: frozenset[int] = frozenset()
        """Expressions that are rounded to half precision soon."""

    def name_of(self, expr: int) -> str:
        """Variable name of an expression, the same in every pass."""
        if expr not in self.variables:
            self.variables[expr] = self.names.fresh(self.b.labels.get(expr, self._default_name(expr)))
        return self.variables[expr]

    def assign(self, scope: Scope, expr: int) -> str:
        """Make sure that an expression has a variable, or is a number, and return its text."""
        known = scope.find(expr)
        if known is not None:
            return known
        text, _ = self.text(scope, expr, top=True)
        if self.b.exprs[expr].op in ("const", "size", "argument"):
            return text
        return self.bind(scope, expr, text)

    def bind(self, scope: Scope, expr: int, text: str) -> str:
        """Give an expression its variable with a given formula."""
        known = scope.find(expr)
        if known is not None:
            return known
        name = self.name_of(expr)
        if text != name:
            scope.say(f"{name} = {text}")
        scope.names[expr] = name
        return name

    def text(self, scope: Scope, expr: int, top: bool = False) -> tuple[str, int]:
        """Write an expression, with its precedence; statements it needs go before."""
        known = scope.find(expr)
        if known is not None:
            return known, ATOM
        record = self.b.exprs[expr]
        if expr in self.needless:
            return self.text(scope, record.args[0], top)
        written = self._leaf(scope, expr, record) or self._coarse(scope, expr, record)
        written = written or self._stepped(scope, expr, record) or self._map(scope, record, exact=expr in self.centring)
        wants_name = expr in self.b.labels or self.uses.get(expr, 0) > 1 or len(written[0]) > LONGEST
        if not top and wants_name and record.op not in ("const", "size", "argument", "index", "load") and not record.reduces():
            return self.bind(scope, expr, written[0]), ATOM
        return written

    def _coarse(self, scope: Scope, expr: int, record: Expr) -> tuple[str, int] | None:
        """Write an exponential whose rounding the device's own is finer than."""
        if expr not in self.coarse or record.op != "exp":
            return None
        return f"tl.exp({self.text(scope, record.args[0])[0]})", ATOM

    def _stepped(self, scope: Scope, expr: int, record: Expr) -> tuple[str, int] | None:
        """Write a quotient that is rounded to whole numbers: the device's own, off by two units, would take other steps."""
        if expr not in self.stepped:
            return None
        texts = ((self.text(scope, arg)[0], self.b.exprs[arg].op in ("const", "argument", "size")) for arg in record.args)
        return f"tl.div_rn({', '.join(f'tl.cast({text}, tl.float32)' if is_number else text for text, is_number in texts)})", ATOM

    def _leaf(self, scope: Scope, expr: int, record: Expr) -> tuple[str, int] | None:
        if record.op == "const":
            kind, text = record.extra
            text = literal(float(text)) if kind == "float" else text
            return text, UNARY if text.startswith("-") else ATOM
        if record.op == "argument":
            return self.arguments.setdefault(record.extra, f"scalar_{record.extra}"), ATOM
        if record.op == "size":
            text = self.space.size(record.extra)
            return text, ATOM if " " not in text else INFIX["mul"][1]
        if record.op == "index":
            return self._index(record), ATOM
        if record.op == "load":
            return self.load(scope, expr), ATOM
        return (self.reduce(scope, expr), ATOM) if record.op in ALONG_ROWS else None

    def _index(self, record: Expr) -> str:
        wanted = self.b.atoms.leaves(record.extra)
        for axis in self.space.axes:
            if axis.atoms == wanted:
                return axis.index
        for axis in self.space.axes:
            if wanted in axis.groups:
                self.space.parts_used.add(axis.name)
                return axis.part(axis.groups.index(wanted))
        for outer, inner in zip(self.space.axes, self.space.axes[1:], strict=False):
            if (*outer.atoms, *inner.atoms) == wanted and outer.name == "steps":
                return f"({outer.index} * {self.space.monomial(inner.atoms)} + {inner.index})"
        raise LoweringError("a position along these dimensions is not an axis of the kernel")

    def _centring_means(self) -> Iterator[int]:
        """Find float32 means that are subtracted from what they are the means of."""
        for record in self.b.exprs:
            total = self.b.total_of_mean(record.args[1]) if record.op == "sub" and record.dtype == "float32" else None
            if total is not None and self.b.exprs[total].args[0] == record.args[0]:
                yield record.args[1]

    def _centres_product(self, record: Expr) -> bool:
        """Whether it is a difference of a product from the maximum, or the mean, of a row of such."""
        if record.op != "sub" or self.b.exprs[record.args[0]].op != "mul" or not is_floating(record.dtype):
            return False
        x, centre = record.args
        behind = self.b.exprs[centre]
        peak = self.b.exprs[behind.args[0]] if behind.op == "finite" else behind
        return centre in self.centring or (peak.reduces(Fold.MAX) and peak.args[0] == x)

    def _centred(self, scope: Scope, record: Expr) -> tuple[str, int]:
        """Write a difference so that no compiler makes it and the product one: that would not be what the maximum was found among."""
        x, centre = (self.assign(scope, arg) for arg in record.args)
        return f"tl.where({x} == {centre}, {centre} - {centre}, {x} - {centre})", ATOM

    def _map(self, scope: Scope, record: Expr, exact: bool) -> tuple[str, int]:
        args = [self.text(scope, arg) for arg in record.args]
        if exact:
            return self._helper("mean", f"{args[0][0]}, {args[1][0]}", record), ATOM
        if record.op == "join":
            *first, (text, _) = args
            for place in range(len(first) - 1, -1, -1):
                text = f"tl.where({piece_mask(place)}, {first[place][0]}, {text})"
            return text, ATOM
        if record.op in INFIX:
            return self._centred(scope, record) if self._centres_product(record) else _infix(record.op, args)
        if record.op == "neg":
            return f"-{_wrap(args[0], UNARY)}", UNARY
        if record.op == "not":
            return f"{_wrap(args[0], ATOM)} == 0", INFIX["eq"][1]
        return self._call(record, args), ATOM

    def _call(self, record: Expr, args: list[tuple[str, int]]) -> str:
        op, first = record.op, args[0][0]
        inner = ", ".join(text for text, _ in args)
        if op == "cast":
            return self._cast(args[0], record, self.b.exprs[record.args[0]].dtype)
        if op == "finite":
            return f'tl.where(tl.abs({first}) == float("inf"), 0.0, {first})'
        if op in ("maximum", "minimum"):
            keep = ", propagate_nan=tl.PropagateNan.ALL" if is_floating(record.dtype) else ""
            return f"tl.{op}({inner}{keep})"
        if op in NAMES and not (op in FLUSHING and (record.dtype == "float64" or is_subnormal_nowhere(self.b, record.args[0]))):
            return self._helper(op, inner, record)
        # the correctly rounded square root is for float32 only; in float64 the plain one is
        return f"{'tl.sqrt' if op == 'sqrt' and record.dtype == 'float64' else CALLS[op]}({inner})"

    def _helper(self, op: str, inner: str, record: Expr) -> str:
        if record.dtype == "float64":
            if op != "exp":
                raise LoweringError(f"{op} in float64 is not generated")
            return f"tl.exp({inner})"
        self.helpers[op] = None
        return f"{NAMES[op]}({inner})"

    def _cast(self, arg: tuple[str, int], record: Expr, source: str) -> str:
        target = str(record.extra)
        # a position along a dimension of one element is a number, and so is what is made of it
        number = self._number(record.args[0]) or ("" if re.search(r"[A-Za-z_]", arg[0]) else TRITON_NUMBERS.get(source, ""))
        text = f"tl.cast({arg[0]}, tl.{number})" if number else _wrap(arg, ATOM)
        if target == "bool":
            return f"({text} != 0)"
        if source == "bool" or target in ("float32", "float64", "int32", "int64"):
            return f"{text}.to(tl.{target})"
        return f"{text}.to(tl.{TRITON.get(target, target)}).to(tl.{record.dtype})"

    def _number(self, expr: int) -> str:
        """Name the dtype of a number that Python works out, which has no method to convert it; nothing of any other expression."""
        record = self.b.exprs[expr]
        if record.op == "const":
            return {"int": "int32", "float": "float32"}.get(str(record.extra[0]), "")
        kinds = {self._number(arg) for arg in record.args} if record.op in INFIX and record.dtype != "bool" else {""}
        return "" if "" in kinds else max(kinds, key=("int32", "float32").index)

    def _default_name(self, expr: int) -> str:
        record = self.b.exprs[expr]
        words = {
            "mul": "scaled",
            "add": "shifted",
            "sub": "centred",
            "div": "ratio",
            "exp_fast": "weight",
            "where": "picked",
            "cast": "value",
            "order": "ranked",
        }
        if record.is_scan:
            return f"{'back' if record.backwards else ''}scan_{record.kind}_"
        return f"{record.kind}_" if record.reduces() else words.get(record.op, record.op.replace("_fast", "") + "_")

    def _count_uses(self, operands: Sequence[int]) -> dict[int, int]:
        uses: dict[int, int] = {}
        seen: set[int] = set()
        stack = [*(output.expr for output in self.space.kernel.outputs), *operands]
        while stack:
            expr = stack.pop()
            if expr in seen:
                continue
            seen.add(expr)
            for arg in self.b.exprs[expr].args:
                uses[arg] = uses.get(arg, 0) + 1
                stack.append(arg)
        return uses


def _infix(op: str, args: list[tuple[str, int]]) -> tuple[str, int]:
    sign, rank = INFIX[op]
    tight = op in ("sub", "div", "mul", "add", "shift_right", "shift_left", "floordiv", "mod")
    # operands of a comparison are wrapped down to sums: Python would chain comparisons and bind & and | tighter
    least = rank if rank > INFIX["eq"][1] else INFIX["add"][1]
    return f"{_wrap(args[0], least)} {sign} {_wrap(args[1], least + 1 if tight else least)}", rank


def _wrap(written: tuple[str, int], rank: int) -> str:
    text, own = written
    return text if own >= rank else f"({text})"
