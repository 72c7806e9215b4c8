"""Where a source failed: the line of the file that a compiler or an exception means, which logs name by the kernel's own lines."""

from __future__ import annotations

import ast
import re
from typing import NamedTuple

from tools.logs import telling_part
from tools.syntax import parsed

_AT = re.compile(r"CompilationError: at (\d+):(\d+):\s*\n\s*def (\w+)")
_FRAME = re.compile(r'candidate\.py", line (\d+)')
_EXCERPT = re.compile(r"^\s*\^?\s*$")


class Fault(NamedTuple):
    """One failure."""

    line: int
    """Of the file, from 1; 0 where the log does not tell."""
    text: str
    """What stands there."""
    message: str
    """The compiler's or the exception's words."""


def fault_of(log: str, source: str) -> Fault:
    """Find what a failing candidate's log says, and at which line of its file."""
    compiled = list(_AT.finditer(log))
    if compiled:
        # the innermost function comes last; it may be one of Triton's own
        starts = ((_definition(source, place[3]), int(place[1])) for place in reversed(compiled))
        line = next((start + below - 1 for start, below in starts if start), 0)
        return Fault(line, _line(source, line), _reason(log[compiled[-1].end() :]) or telling_part(log))
    frames = _FRAME.findall(log)
    line = int(frames[-1]) if frames else 0
    return Fault(line, _line(source, line), telling_part(log))


def fault_text(fault: Fault) -> str:
    """Write a fault as a reader of the source wants it."""
    return f"{fault.message}\nat line {fault.line} of the file: {fault.text}" if fault.line else fault.message


def _reason(after: str) -> str:
    """What stands below the compiler's excerpt of the kernel, which ends with a caret."""
    _, caret, rest = after.rpartition("^\n")
    lines = [line.strip() for line in (rest if caret else "").splitlines() if not _EXCERPT.match(line)]
    # the error behind the compiler's repeats its words
    return "\n".join(line for place, line in enumerate(lines[:6]) if not place or not line.endswith(lines[0]))


def _definition(source: str, name: str) -> int:
    """First line of a function's definition, without its decorators; 0 where there is none."""
    try:
        tree = parsed(source)
    except (SyntaxError, ValueError, RecursionError):
        return 0
    return next((node.lineno for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and node.name == name), 0)


def _line(source: str, line: int) -> str:
    lines = source.splitlines()
    return lines[line - 1].strip() if 0 < line <= len(lines) else ""
