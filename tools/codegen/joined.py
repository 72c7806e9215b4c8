"""Joins kernel files for one problem into one: each serves the sizes at which it is the fastest, by a bound on a tensor's elements."""

from __future__ import annotations

import ast
import io
import math
import re
import tokenize
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from tools.records import Problem, ProblemShape
from tools.syntax import parsed

ENTRY = "ModelNew"
_TAIL = '''

class {entry}({first}):
    """Gives each call to the kernels that were fastest at sizes like its own."""

    def forward({arguments}):
        elements = {input}.numel()
{branches}
        return {last}.forward({arguments})
'''


class UnjoinableError(Exception):
    """Files that cannot be joined; the text says why, as a clause."""


@dataclass(frozen=True)
class _Segment:
    """Shapes in a row, by size, that one file serves."""

    source: str
    smallest: int
    largest: int


def joined(problem: Problem, best: Sequence[tuple[ProblemShape, str]]) -> str:
    """Write the file, given for each shape the source that is to serve it."""
    name, segments = _segments(best)
    sources = list(dict.fromkeys(segment.source for segment in segments))
    names = [f"{ENTRY}At{place}" for place in range(len(sources))]
    for source in sources[1:]:
        _demand_simple(problem, source)
    arguments = ", ".join(["self", *(each.name for each in problem.abi.arguments)])
    branches = []
    for one, following in pairwise(segments):
        bound = math.isqrt(one.largest * following.smallest)
        branches += [f"        if elements <= {bound}:", f"            return {names[sources.index(one.source)]}.forward({arguments})"]
    tail = _TAIL.format(
        entry=ENTRY,
        first=names[0],
        arguments=arguments,
        input=name,
        branches="\n".join(branches),
        last=names[sources.index(segments[-1].source)],
    )
    parts = [_renamed(source, place) for place, source in enumerate(sources)]
    kept = [parts[0], *(_without_imports(part, parts[0]) for part in parts[1:])]
    return "\n\n".join(part.strip("\n") + "\n" for part in kept) + tail


def _segments(best: Sequence[tuple[ProblemShape, str]]) -> tuple[str, list[_Segment]]:
    """Find an input by whose elements the files can be told apart, and the sizes that each serves, from small to large."""
    for place, spec in enumerate(best[0][0].abi.inputs):
        found = sorted((shape.abi.inputs[place].numel, source) for shape, source in best)
        if any(a[0] == b[0] and a[1] != b[1] for a, b in pairwise(found)):
            continue
        segments: list[_Segment] = []
        for elements, source in found:
            if segments and segments[-1].source == source:
                segments[-1] = _Segment(source, segments[-1].smallest, elements)
            else:
                segments.append(_Segment(source, elements, elements))
        return spec.name, segments
    raise UnjoinableError("no input's number of elements tells the shapes apart")


def _demand_simple(problem: Problem, source: str) -> None:
    """Refuse a file whose module is more than its parameters and its forward: it is called with another file's module."""
    known = {spec.name.partition(".")[0] for spec in problem.abi.parameters}
    cls = next((node for node in parsed(source).body if isinstance(node, ast.ClassDef) and node.name == ENTRY), None)
    if cls is None:
        raise UnjoinableError(f"a file defines no class {ENTRY}")
    methods = {node.name for node in cls.body if isinstance(node, ast.FunctionDef)}
    if extra := sorted(methods - {"__init__", "forward"}):
        raise UnjoinableError(f"a module has the method {extra[0]}")
    stored = {
        node.attr
        for node in ast.walk(cls)
        if isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name)
        and node.value.id == "self"
        and isinstance(node.ctx, ast.Store)
    }
    if extra := sorted(stored - known):
        raise UnjoinableError(f"a module keeps {extra[0]} for itself")


def _renamed(source: str, place: int) -> str:
    """Give what a file defines names of its own, so that two files go into one."""
    tree = parsed(source)
    own = {name for node in tree.body for name in _defined(node)}
    names = {name: f"{ENTRY}At{place}" if name == ENTRY else f"{name}_at{place}" for name in own if place or name == ENTRY}
    lines = source.splitlines(keepends=True)
    tokens = list(tokenize.generate_tokens(io.StringIO(source).readline))
    depth, before = 0, ""
    edits: list[tuple[int, int, int, str]] = []
    for token, after in zip(tokens, [*tokens[1:], tokens[-1]], strict=True):
        depth += (token.string in "([{") - (token.string in ")]}") if token.type == tokenize.OP else 0
        keyword = depth > 0 and after.string == "=" and before in "(,"
        if token.type == tokenize.NAME and token.string in names and before != "." and not keyword:
            edits.append((token.start[0], token.start[1], token.end[1], names[token.string]))
        if token.type not in (tokenize.NL, tokenize.COMMENT):
            before = token.string
    for line, start, end, name in reversed(edits):
        lines[line - 1] = lines[line - 1][:start] + name + lines[line - 1][end:]
    return "".join(lines)


def _defined(node: ast.stmt) -> list[str]:
    """List what a statement at a file's top defines, imports left out."""
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        return [node.name]
    if isinstance(node, ast.Import | ast.ImportFrom):
        return []
    return [part.id for part in ast.walk(node) if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)]


def _without_imports(source: str, first: str) -> str:
    """Leave out a file's docstring and the imports that the first file has."""
    tree = parsed(source)
    have = set(first.splitlines())
    lines = source.splitlines()
    gone: set[int] = set()
    for place, node in enumerate(tree.body):
        span = range(node.lineno, (node.end_lineno or node.lineno) + 1)
        docstring = place == 0 and isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        if docstring or (isinstance(node, ast.Import | ast.ImportFrom) and all(lines[line - 1] in have for line in span)):
            gone.update(span)
    text = "\n".join(line for number, line in enumerate(lines, 1) if number not in gone)
    return re.sub(r"\n{4,}", "\n\n\n", text)
