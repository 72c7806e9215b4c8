"""CUDA C++ inside of a candidate's strings: its kernels, and where each definition begins and ends."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from tools.syntax import parsed

_KERNEL = re.compile(r"__global__[^;{}()]*?(?:__launch_bounds__\s*\([^)]*\)[^;{}()]*?)?\b(\w+)\s*\(")


def cuda_kernels(source: str) -> tuple[str, ...]:
    """Names of the `__global__` functions in a source's strings, in order."""
    try:
        tree = parsed(source)
    except (SyntaxError, ValueError, RecursionError):
        return ()
    return tuple(dict.fromkeys(name for text in _texts(tree) for name in _KERNEL.findall(str(text.value))))


def cuda_parts(tree: ast.Module, source: str, wanted: set[str]) -> Iterator[tuple[int, int]]:
    """First and last line of each C++ definition that is, or launches, a wanted kernel."""
    named = {name for text in _texts(tree) for name in _KERNEL.findall(str(text.value))} & wanted
    lines = source.splitlines()
    for text in _texts(tree) if named else ():
        for first, last in _definitions(lines, text.lineno + 1, (text.end_lineno or text.lineno) - 1):
            body = "\n".join(lines[first - 1 : last])
            if any(re.search(rf"\b{name}\b", body) for name in named):
                yield first, last


def _texts(tree: ast.Module) -> list[ast.Constant]:
    """The strings of several lines that hold code of the device."""
    found = (node for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str))
    return [node for node in found if node.end_lineno != node.lineno and ("__global__" in str(node.value) or "<<<" in str(node.value))]


def _definitions(lines: list[str], first: int, last: int) -> Iterator[tuple[int, int]]:
    """Top-level definitions with a body, by their braces; what stands directly above one (a comment, a template's line) belongs to it."""
    depth, start = 0, 0
    for number in range(first, last + 1):
        line = re.sub(r"//.*|\"(?:\\.|[^\"\\])*\"", "", lines[number - 1])
        if not depth and (not lines[number - 1].strip() or line.lstrip().startswith("#")):
            start = 0
            continue
        start = start or number
        depth += line.count("{") - line.count("}")
        if not depth and "}" in line:
            yield start, number
            start = 0
        elif not depth and line.rstrip().endswith(";"):
            start = 0
