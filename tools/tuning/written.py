"""Numbers that stand in a written source, Triton or CUDA C++, and that a tuner may change: tile sizes, warps, stages, and the like.

Looked for are integers that launches give to `tl.constexpr` parameters, directly or by a name that is assigned once, defaults of such
parameters, constants of the module that kernels read, stages of `tl.range`, warps and stages of each launch (Triton's own where it names
none), and named integers of CUDA C++. Whether one is free, or a size of the problem in disguise, only a trial can tell.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace

from tools.records import content_hash
from tools.syntax import parsed

WARPS = (1, 2, 4, 8, 16)
STAGES = (1, 2, 3, 4, 5)
DEFAULTS = {"num_warps": 4, "num_stages": 3}
"""What Triton takes where a launch names none (triton 3, NVIDIA)."""
LARGEST = 1 << 15
TUNING_WORD = re.compile(r"BLOCK|TILE|CHUNK|GROUP|SPLIT|UNROLL|PER_|VEC|THREADS|WARPS|STAGES|^B[A-Z]$|^BLK", re.IGNORECASE)
"""Names that mean a free number even where it is 1, or equals one of the problem's sizes."""
SIZE_WORD = re.compile(r"numel$|^n\d+$")
"""Names by which files made of Inductor's kernels give sizes of the problem, or what follows from them."""
_NATIVE = re.compile(rb"(?:#define\s+(\w+)[ \t]+|constexpr\s+(?:unsigned\s+)?(?:int|unsigned|long|size_t)\s+(\w+)\s*=\s*)(\d+)\b(?![.\w])")


@dataclass(frozen=True)
class Place:
    """Where a number stands: offsets in the source's UTF-8 bytes."""

    start: int
    end: int
    """Equal to `start` where it is to be inserted."""
    form: str = "{}"
    """How it is written there."""


@dataclass(frozen=True)
class Number:
    """One number of a source."""

    name: str
    """For people: `kernel.BLOCK_M`, or the name of a constant."""
    value: int
    values: tuple[int, ...]
    """What it may be, its own value among them, ascending."""
    places: tuple[Place, ...]


def written_numbers(source: str, sizes: Collection[int] = ()) -> tuple[Number, ...]:
    """Find the numbers of a source in order; `sizes` are the problem's own, which a number by another name than a tile's may stand for."""
    try:
        reading = _Reading(source)
    except (SyntaxError, ValueError, RecursionError):
        return ()
    found: dict[str, Number] = {}
    for number in (*reading.numbers(), *_native(source)):
        allowed = _allowed(number, sizes)
        if len(allowed) < 2:
            continue
        known = found.get(number.name)
        if known is None:
            found[number.name] = replace(number, values=allowed)
        elif known.value == number.value:
            found[number.name] = replace(known, places=tuple(dict.fromkeys((*known.places, *number.places))))
        elif known.places != number.places:
            name = f"{number.name}@{1 + sum(each.partition('@')[0] == number.name for each in found)}"
            found[name] = replace(number, name=name, values=allowed)
    return tuple(found.values())


def with_numbers(source: str, numbers: Collection[Number], values: Mapping[str, int]) -> str:
    """Write other values for some of the numbers."""
    data = source.encode()
    changed = [number for number in numbers if values.get(number.name, number.value) != number.value]
    places = [(place, values[number.name]) for number in changed for place in number.places]
    for place, value in sorted(places, key=lambda one: one[0].start, reverse=True):
        data = data[: place.start] + place.form.format(value).encode() + data[place.end :]
    return data.decode()


def text_around(source: str, numbers: Collection[Number]) -> str:
    """Sign what of a source a change of its numbers leaves as it is."""
    data = source.encode()
    for place in sorted({place for number in numbers for place in number.places}, key=lambda one: one.start, reverse=True):
        data = data[: place.start] + b"#" + data[place.end :]
    return content_hash(data.decode())


def _allowed(number: Number, sizes: Collection[int]) -> tuple[int, ...]:
    own, last = number.value, number.name.rpartition(".")[2]
    if SIZE_WORD.search(last):
        return ()
    if last == "num_warps":
        return tuple(sorted({*WARPS, own}))
    if last == "num_stages":
        return tuple(sorted({*STAGES, own}))
    tile = TUNING_WORD.search(last) is not None
    if own < 1 or own & (own - 1) or not (tile or (own > 1 and own not in sizes)):
        return ()
    return tuple(value for shift in range(-2, 3) if 1 <= (value := int(own * 2.0**shift)) <= LARGEST)


def _native(source: str) -> Iterator[Number]:
    """Named integers of CUDA C++."""
    data = source.encode()
    if b"__global__" not in data:
        return
    for match in _NATIVE.finditer(data):
        name = (match[1] or match[2]).decode()
        yield Number(name, int(match[3]), (), (Place(*match.span(3)),))


class _Reading:
    """One source, its kernels and its named integers."""

    def __init__(self, source: str) -> None:
        self._tree = parsed(source)
        starts = [0]
        for line in source.encode().splitlines(keepends=True):
            starts.append(starts[-1] + len(line))
        self._starts = starts
        self._kernels = {node.name: node for node in ast.walk(self._tree) if isinstance(node, ast.FunctionDef) and _is_kernel(node)}
        self._module = _named(self._tree.body)
        self._given: dict[str, list[set[str]]] = {}
        """By kernel: constexpr parameters that each of its launches gives."""

    def numbers(self) -> Iterator[Number]:
        """Numbers of launches first, then of kernels, then of the module."""
        functions = [node for node in ast.walk(self._tree) if isinstance(node, ast.FunctionDef) and node.name not in self._kernels]
        for function in functions:
            if function.name != "pack_weights":
                yield from self._in_host(function)
        for kernel in self._kernels.values():
            yield from self._defaults(kernel)
            yield from self._loops(kernel)
            yield from self._read_constants(kernel)

    def _in_host(self, function: ast.FunctionDef) -> Iterator[Number]:
        local = _named(function.body)
        for call in (node for node in ast.walk(function) if isinstance(node, ast.Call)):
            kernel = self._launched(call)
            if kernel is not None:
                yield from self._of_launch(call, kernel, function, local)

    def _launched(self, call: ast.Call) -> ast.FunctionDef | None:
        target = call.func.value if isinstance(call.func, ast.Subscript) else None
        return self._kernels.get(target.id) if isinstance(target, ast.Name) else None

    def _of_launch(
        self, call: ast.Call, kernel: ast.FunctionDef, function: ast.FunctionDef, local: dict[str, ast.Constant | None]
    ) -> Iterator[Number]:
        constants = _constexprs(kernel)
        names = [argument.arg for argument in kernel.args.args]
        given = {keyword.arg: keyword.value for keyword in call.keywords if keyword.arg}
        given |= {name: value for name, value in zip(names, call.args, strict=False) if not isinstance(value, ast.Starred)}
        self._given.setdefault(kernel.name, []).append(set(given))
        for name, value in given.items():
            if name not in constants and name not in DEFAULTS:
                continue
            if _integer(value) is not None:
                yield from self._literal(f"{kernel.name}.{name}", value, given, _divisors_for(call, function))
            elif isinstance(value, ast.Name):
                yield from self._by_name(value.id, local, function)
        if any(keyword.arg is None for keyword in call.keywords):
            # what is unpacked there may name them
            return
        given_nodes: tuple[ast.expr | ast.keyword, ...] = (*call.args, *call.keywords)
        last = max((_end(node) for node in given_nodes), default=None)
        loops = any(isinstance(node, ast.For | ast.While) for node in ast.walk(kernel))
        for name, default in DEFAULTS.items():
            # stages are those of a loop
            if name not in given and last is not None and (loops or name == "num_warps"):
                at = self._offset(*last)
                yield Number(f"{kernel.name}.{name}", default, (), (Place(at, at, f", {name}={{}}"),))

    def _literal(self, name: str, value: ast.expr, given: Mapping[str, ast.expr], divided: tuple[ast.expr, ...]) -> Iterator[Number]:
        """A number that a launch spells out, together with the same number where its grid divides by it."""
        own = _integer(value)
        divisors = [node for node in divided if _integer(node) == own]
        alike = sum(_integer(other) == own for key, other in given.items() if key not in DEFAULTS)
        if own is None or (divisors and alike > 1 and name.rpartition(".")[2] not in DEFAULTS):
            # which of them the grid means cannot be told
            return
        joined = () if name.rpartition(".")[2] in DEFAULTS else divisors
        yield Number(name, own, (), tuple(self._place(node) for node in (value, *joined)))

    def _by_name(self, name: str, local: dict[str, ast.Constant | None], function: ast.FunctionDef) -> Iterator[Number]:
        if name in {argument.arg for argument in (*function.args.args, *function.args.kwonlyargs)}:
            return
        node = local[name] if name in local else self._module.get(name)
        if node is not None:
            yield Number(name, int(str(node.value)), (), (self._place(node),))

    def _defaults(self, kernel: ast.FunctionDef) -> Iterator[Number]:
        constants, launches = _constexprs(kernel), self._given.get(kernel.name, [])
        arguments = kernel.args.args[len(kernel.args.args) - len(kernel.args.defaults) :]
        pairs = [*zip(arguments, kernel.args.defaults, strict=True), *zip(kernel.args.kwonlyargs, kernel.args.kw_defaults, strict=True)]
        for argument, default in pairs:
            own = _integer(default) if default is not None else None
            if own is None or default is None or argument.arg not in constants:
                continue
            if not launches or not all(argument.arg in given for given in launches):
                yield Number(f"{kernel.name}.{argument.arg}", own, (), (self._place(default),))

    def _loops(self, kernel: ast.FunctionDef) -> Iterator[Number]:
        for call in (node for node in ast.walk(kernel) if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("range")):
            for keyword in call.keywords:
                own = _integer(keyword.value)
                if keyword.arg == "num_stages" and own is not None:
                    yield Number(f"{kernel.name}.range.num_stages", own, (), (self._place(keyword.value),))

    def _read_constants(self, kernel: ast.FunctionDef) -> Iterator[Number]:
        read = {node.id for node in ast.walk(kernel) if isinstance(node, ast.Name)}
        for name, node in self._module.items():
            if node is not None and name in read:
                yield Number(name, int(str(node.value)), (), (self._place(node),))

    def _place(self, node: ast.expr) -> Place:
        return Place(self._offset(node.lineno, node.col_offset), self._offset(*_end(node)))

    def _offset(self, line: int, column: int) -> int:
        return self._starts[line - 1] + column


def _is_kernel(function: ast.FunctionDef) -> bool:
    """Whether a function is a Triton kernel whose numbers are its launches'; autotuned ones choose their own."""
    decorators = [ast.unparse(one) for one in function.decorator_list]
    return any("jit" in one for one in decorators) and not any("autotune" in one for one in decorators)


def _constexprs(kernel: ast.FunctionDef) -> set[str]:
    every = (*kernel.args.args, *kernel.args.kwonlyargs)
    return {one.arg for one in every if one.annotation is not None and "constexpr" in ast.unparse(one.annotation)}


def _named(body: list[ast.stmt]) -> dict[str, ast.Constant | None]:
    """Names that are assigned in a body; with the integer where that is all that is ever assigned, else None."""
    found: dict[str, ast.Constant | None] = {}
    for node in (inner for statement in body for inner in _scope(statement)):
        for target, value in _assigned(node):
            literal = _constant(value)
            found[target] = literal if target not in found else None
    return found


def _scope(node: ast.AST) -> Iterator[ast.AST]:
    """A statement and what is in it, but for the bodies of other functions and classes."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda):
        return
    yield node
    for child in ast.iter_child_nodes(node):
        yield from _scope(child)


def _assigned(node: ast.AST) -> Iterator[tuple[str, ast.expr | None]]:
    """Names that a node binds, each with its value where that is told."""
    if isinstance(node, ast.Assign):
        for target in node.targets:
            if isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple) and len(target.elts) == len(node.value.elts):
                yield from ((ast.unparse(one), value) for one, value in zip(target.elts, node.value.elts, strict=True))
            else:
                names = target.elts if isinstance(target, ast.Tuple | ast.List) else [target]
                yield from ((ast.unparse(one), node.value if one is target else None) for one in names)
    elif isinstance(node, ast.AnnAssign):
        yield ast.unparse(node.target), node.value
    elif isinstance(node, ast.AugAssign | ast.NamedExpr | ast.For):
        yield ast.unparse(node.target), None


def _constant(value: ast.expr | None) -> ast.Constant | None:
    """The integer that an expression is, or that `tl.constexpr(…)` wraps."""
    if isinstance(value, ast.Call) and ast.unparse(value.func).endswith("constexpr") and len(value.args) == 1:
        value = value.args[0]
    return value if isinstance(value, ast.Constant) and _integer(value) is not None else None


def _integer(value: ast.expr | None) -> int | None:
    plain = isinstance(value, ast.Constant) and isinstance(value.value, int) and not isinstance(value.value, bool)
    return int(str(value.value)) if isinstance(value, ast.Constant) and plain else None


def _divisors_for(call: ast.Call, function: ast.FunctionDef) -> tuple[ast.expr, ...]:
    """What a launch's grid divides by, where the launch spells that out; else what its function does."""
    grid = call.func.slice if isinstance(call.func, ast.Subscript) else function
    return tuple(_divisors(grid)) or tuple(_divisors(function))


def _divisors(part: ast.AST) -> Iterator[ast.expr]:
    """What a part of a host function divides by: `cdiv(n, BLOCK)`, `n // BLOCK`."""
    for node in ast.walk(part):
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.FloorDiv):
            yield node.right
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith("cdiv") and len(node.args) == 2:
            yield node.args[1]


def _end(node: ast.expr | ast.keyword) -> tuple[int, int]:
    assert node.end_lineno is not None
    assert node.end_col_offset is not None
    return node.end_lineno, node.end_col_offset
