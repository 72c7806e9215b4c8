"""Integer constants of a user's file: where they are, what reaches them, and how to give them other values.

A constant is a module-level name bound to an integer expression without names (`N = 1024 * 2`), an integer element of a
module-level tuple (`shape[0]`), or an integer literal inside an input maker (`get_inputs#0`, counted in reading order). Where a
condition chooses between integers (`N = 64 if FLAG else 32`, or an `if` statement), all of them together are one constant.
"""

from __future__ import annotations

import ast
import functools
import symtable
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from tools.errors import UserError
from tools.records import Problem, ProblemForm
from tools.syntax import parsed

Span = tuple[int, int, int, int]
"""First line, first column, last line, last column of an expression; lines from 1, columns in bytes of UTF-8."""


@dataclass(frozen=True)
class Constant:
    """One integer of the source."""

    key: str
    """Name in `Problem.sizes`."""
    name: str
    """The module-level name it belongs to, or the function it stands in."""
    value: int
    span: Span
    """Of its expression."""
    others: tuple[tuple[int, Span], ...] = ()
    """What else a condition may choose in its place: value and expression; a new value replaces them all."""

    @property
    def values(self) -> tuple[int, ...]:
        """What it may be; the file's conditions decide."""
        return (self.value, *(value for value, _ in self.others))


def constants(tree: ast.Module, makers: Iterable[str]) -> tuple[Constant, ...]:
    """List the constants of a file; a name that is bound twice or declared global in a function is none."""
    found: list[Constant] = []
    bound: dict[str, int] = {}
    for target, value in _bindings(tree):
        bound[target] = bound.get(target, 0) + 1
        found.extend(_of_binding(target, value))
    rebound = {name for name, count in bound.items() if count > 1}
    rebound |= {name for node in ast.walk(tree) if isinstance(node, ast.Global) for name in node.names}
    kept = [constant for constant in found if constant.name not in rebound]
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and node.name in set(makers):
            kept.extend(_literals(node))
    # `height = width = 128` binds one expression to two names: it is one constant, under its first name
    return tuple({constant.span: constant for constant in reversed(kept)}.values())[::-1]


def override(source: str, sizes: dict[str, int], makers: Iterable[str], title: str) -> str:
    """Rewrite `source` with other values for the constants named in `sizes`; every line keeps its number."""
    if not sizes:
        return source
    known = {constant.key: constant for constant in _constants_of(source, tuple(makers))}
    if unknown := sorted(set(sizes) - set(known)):
        raise UserError(f"{title} has no integer constant {unknown[0]!r} to override.", f"It has: {', '.join(known) or 'none'}.")
    lines = [line.encode() for line in source.splitlines(keepends=True)]
    spans = [(span, key) for key in sizes for span in (known[key].span, *(other for _, other in known[key].others))]
    for (line, start, last, end), key in sorted(spans, reverse=True):
        # an expression over several lines leaves its line breaks behind, so that later lines keep their numbers
        breaks = b"".join(b" \\\n" for _ in range(last - line))
        lines[line - 1 : last] = [lines[line - 1][:start] + str(sizes[key]).encode() + breaks + lines[last - 1][end:]]
    return b"".join(lines).decode()


@functools.lru_cache(maxsize=16)
def _constants_of(source: str, makers: tuple[str, ...]) -> tuple[Constant, ...]:
    """Read a file's constants once for all sizes that are tried."""
    return constants(parsed(source), makers)


def reachable(source: str, roots: Iterable[str]) -> set[str]:
    """Names of the module level that the definitions called `roots` use, directly or through one another.

    Scopes are respected: a parameter or local variable that happens to be called like a constant does not use it.
    """
    uses = _uses(source)
    seen: set[str] = set()
    waiting = list(roots)
    while waiting:
        name = waiting.pop()
        if name not in seen:
            seen.add(name)
            waiting.extend(uses.get(name, ()))
    return seen


def small_sizes(tree: ast.Module, title: str) -> list[dict[str, int]] | None:
    """Read the optional module-level `SMALL_SIZES`; None where the file has none."""
    for target, value in _bindings(tree):
        if target == "SMALL_SIZES":
            try:
                sizes = ast.literal_eval(value)
                return [{str(key): int(size) for key, size in entry.items()} for entry in sizes]
            except (ValueError, TypeError, AttributeError) as error:
                what = f"SMALL_SIZES in {title} is not a list of dictionaries of integers (line {value.lineno})."
                raise UserError(what, "Write it as [{'rows': 7, 'columns': 129}].") from error
    return None


def workloads(tree: ast.Module, title: str) -> dict[str, tuple[float, dict[str, int]]]:
    """Read the optional module-level `WORKLOADS` with `WEIGHTS`: by name how often it counts, and its sizes."""
    found = _literal(tree, title, "WORKLOADS", "{'prefill': {'tokens': 2048}, 'decode': {'tokens': 1}}")
    weights = _literal(tree, title, "WEIGHTS", "{'decode': 100}") if found else {}
    if unknown := sorted(set(weights) - set(found)):
        raise UserError(f"WEIGHTS in {title} names {unknown[0]!r}, which is no workload.", f"It has: {', '.join(found)}.")
    try:
        read = {
            str(name): (float(weights.get(name, 1)), {str(key): int(size) for key, size in sizes.items()}) for name, sizes in found.items()
        }
    except (ValueError, TypeError, AttributeError) as error:
        what = f"WORKLOADS in {title} does not hold sizes, or WEIGHTS no numbers ({error})."
        raise UserError(what, "Write {'decode': {'tokens': 1}}, and weights above 0.") from error
    if low := next((name for name, (weight, _) in read.items() if not weight > 0), None):
        raise UserError(
            f"The weight of the workload {low!r} in {title} is {read[low][0]:g}.", "Give a number above 0: how often it counts."
        )
    return read


def _literal(tree: ast.Module, title: str, name: str, example: str) -> dict[str, Any]:
    """Read an optional module-level dictionary; empty where the file has none."""
    for target, value in _bindings(tree):
        if target == name:
            try:
                found = ast.literal_eval(value)
                if isinstance(found, dict):
                    return found
            except ValueError:
                pass
            raise UserError(f"{name} in {title} is no dictionary of plain values (line {value.lineno}).", f"Write it as {example}.")
    return {}


def takes_views(problem: Problem) -> bool:
    """Whether a problem's inputs may begin anywhere in memory (`INPUT_VIEWS` in its file); contiguous they are in any case."""
    return problem.form is not ProblemForm.EXPORTED and _flag(parsed(problem.source), problem.name, "INPUT_VIEWS")


def weights_change(problem: Problem) -> bool:
    """Whether a problem's parameters change from call to call (`WEIGHTS_CHANGE` in its file), as in training."""
    return problem.form is not ProblemForm.EXPORTED and _flag(parsed(problem.source), problem.name, "WEIGHTS_CHANGE")


def _flag(tree: ast.Module, title: str, name: str) -> bool:
    """Read an optional module-level constant that is True or False; False where the file has none."""
    for target, value in _bindings(tree):
        if target == name:
            if not isinstance(value, ast.Constant) or not isinstance(value.value, bool):
                raise UserError(f"{name} in {title} is neither True nor False (line {value.lineno}).", f"Write {name} = True.")
            return value.value
    return False


def _bindings(tree: ast.Module) -> Iterator[tuple[str, ast.expr]]:
    """Module-level assignments, tuples taken apart: `a, b = 1, 2` gives two."""
    yield from _bound_in(tree.body)


def _bound_in(body: Iterable[ast.stmt]) -> Iterator[tuple[str, ast.expr]]:
    for node in body:
        if isinstance(node, ast.If):
            yield from _bound_in_either(node)
        elif isinstance(node, ast.AnnAssign) and node.value is not None and isinstance(node.target, ast.Name):
            yield node.target.id, node.value
        elif isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
            yield from ((node.target.id, node.value), (node.target.id, node.value))
        elif isinstance(node, ast.Assign):
            for target in node.targets:
                yield from _pairs(target, node.value)


def _bound_in_either(node: ast.If) -> Iterator[tuple[str, ast.expr]]:
    """Names that both branches of an `if` statement bind, each once: to one of two values. Others are left out."""
    one, other = (Counter(name for name, _ in _bound_in(branch)) for branch in (node.body, node.orelse))
    values = dict(_bound_in(node.orelse))
    for name, value in _bound_in(node.body):
        if one[name] == other[name] == 1:
            yield name, ast.IfExp(node.test, value, values[name])


def _pairs(target: ast.expr, value: ast.expr) -> Iterator[tuple[str, ast.expr]]:
    if isinstance(target, ast.Name):
        yield target.id, value
    elif isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts):
        for left, right in zip(target.elts, value.elts, strict=True):
            yield from _pairs(left, right)
    elif isinstance(target, ast.Tuple) and isinstance(value, ast.IfExp) and (split := _split(value, len(target.elts))):
        for left, right in zip(target.elts, split, strict=True):
            yield from _pairs(left, right)
    elif isinstance(target, ast.Tuple):
        yield from ((name.id, value) for name in ast.walk(target) if isinstance(name, ast.Name))


def _split(value: ast.IfExp, count: int) -> list[ast.expr]:
    """Take a choice between tuples of `count` elements apart, element by element; empty where it is none."""
    parts = []
    for branch in (value.body, value.orelse):
        inner = _split(branch, count) if isinstance(branch, ast.IfExp) else branch.elts if isinstance(branch, ast.Tuple) else []
        if len(inner) != count:
            return []
        parts.append(inner)
    return [ast.IfExp(value.test, one, other) for one, other in zip(*parts, strict=True)]


def _of_binding(name: str, value: ast.expr) -> Iterator[Constant]:
    whole = _constant(name, name, value)
    if whole is not None:
        yield whole
    elif isinstance(value, ast.IfExp):
        counts = {len(choice.elts) for choice in _choices(value) if isinstance(choice, ast.Tuple)}
        split = _split(value, counts.pop()) if len(counts) == 1 else []
        yield from filter(None, (_constant(f"{name}[{index}]", name, element) for index, element in enumerate(split)))
    elif isinstance(value, ast.Tuple | ast.List):
        yield from filter(None, (_constant(f"{name}[{index}]", name, element) for index, element in enumerate(value.elts)))


def _constant(key: str, name: str, value: ast.expr) -> Constant | None:
    """Make a constant of an integer, or of a choice between integers; None where it is neither."""
    found = [(number, _span(choice)) for choice in _choices(value) if (number := _integer(choice)) is not None]
    if len(found) < len(_choices(value)):
        return None
    return Constant(key, name, *found[0], others=tuple(found[1:]))


def _choices(value: ast.expr) -> list[ast.expr]:
    """List what conditions choose between; a value that none chooses is alone."""
    return [*_choices(value.body), *_choices(value.orelse)] if isinstance(value, ast.IfExp) else [value]


def _literals(function: ast.FunctionDef) -> Iterator[Constant]:
    integers = (n for n in ast.walk(function) if isinstance(n, ast.Constant) and type(n.value) is int)
    for index, node in enumerate(sorted(integers, key=lambda n: (n.lineno, n.col_offset))):
        assert isinstance(node.value, int)
        yield Constant(f"{function.name}#{index}", function.name, node.value, _span(node))


def _integer(node: ast.expr) -> int | None:
    """Value of an integer expression of literals and `+ - * // ** <<`, or None."""
    allowed = (ast.Constant, ast.BinOp, ast.Add, ast.Sub, ast.Mult, ast.FloorDiv, ast.Pow, ast.LShift)
    if not all(isinstance(part, allowed) for part in ast.walk(node)):
        return None
    if not all(type(part.value) is int and part.value < 1 << 40 for part in ast.walk(node) if isinstance(part, ast.Constant)):
        return None
    value = eval(compile(ast.Expression(node), "<constant>", "eval"), {"__builtins__": {}})  # noqa: S307 - integer literals only, checked above
    return value if type(value) is int else None


def _span(node: ast.expr) -> tuple[int, int, int, int]:
    assert node.end_lineno is not None
    assert node.end_col_offset is not None
    return node.lineno, node.col_offset, node.end_lineno, node.end_col_offset


@functools.lru_cache(maxsize=16)
def _uses(source: str) -> dict[str, set[str]]:
    """For each name defined at module level, the module-level names its definition reads."""
    tree = parsed(source)
    uses: dict[str, set[str]] = {}
    for target, value in _bindings(tree):
        uses.setdefault(target, set()).update(_names(value))
    for scope in symtable.symtable(source, "<problem>", "exec").get_children():
        uses.setdefault(scope.get_name(), set()).update(_globals(scope))
    for node in tree.body:
        # bases, decorators and default values are read in the module's scope
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            heads: list[ast.expr] = [*node.decorator_list, *getattr(node, "bases", ())]
            inner = [n.args for n in ast.walk(node) if isinstance(n, ast.FunctionDef | ast.Lambda)]
            heads += [value for args in inner for value in (*args.defaults, *args.kw_defaults) if value is not None]
            uses.setdefault(node.name, set()).update(*(_names(head) for head in heads))
    return uses


def _globals(scope: symtable.SymbolTable) -> set[str]:
    own = {symbol.get_name() for symbol in scope.get_symbols() if symbol.is_global() and symbol.is_referenced()}
    return own.union(*(_globals(child) for child in scope.get_children()))


def _names(node: ast.AST) -> set[str]:
    return {part.id for part in ast.walk(node) if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Load)}
