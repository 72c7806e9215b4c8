"""Anchors: the parts of a parent's source that an action may change, and the check that nothing else was changed."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import NamedTuple

from agents.sources.cuda import cuda_parts
from tools.syntax import parsed

_PART = re.compile(r"^[ \t]*(?:#|//) >>> part (\d+)[^\n]*\n(.*?)^[ \t]*(?:#|//) <<< part \1[ \t]*$", re.DOTALL | re.MULTILINE)
_MARK = re.compile(r"^[ \t]*(?:#|//) (?:>>>|<<<) part \d+[^\n]*\n?", re.MULTILINE)


class Anchor(NamedTuple):
    """One part that may change: whole lines, counted from 1."""

    first: int
    last: int
    sign: str
    """How a comment begins there."""


def find_anchors(source: str, region: str) -> tuple[Anchor, ...]:
    """The functions that a region names, those that call them and `ModelNew.forward`, in order; none where the source has no such function.

    With `forward` a method that packs weights can be added beside it, and be noticed there.
    """
    wanted = {part.strip() for part in region.split("+")}
    try:
        tree = parsed(source)
    except (SyntaxError, ValueError, RecursionError):
        return ()
    found = [*_python_parts(tree, wanted), *(Anchor(first, last, "//") for first, last in cuda_parts(tree, source, wanted))]
    merged: list[Anchor] = []
    for anchor in sorted(found):
        if merged and anchor.first <= merged[-1].last:
            merged[-1] = merged[-1]._replace(last=max(anchor.last, merged[-1].last))
        else:
            merged.append(anchor)
    return tuple(merged)


def anchored(source: str, anchors: tuple[Anchor, ...]) -> str:
    """Write the source with a mark before and after each part that may change."""
    lines = source.splitlines()
    for index, (first, last, sign) in reversed(list(enumerate(anchors, 1))):
        indent = re.match(r"[ \t]*", lines[first - 1])
        space = indent.group() if indent else ""
        lines[first - 1 : last] = [f"{space}{sign} >>> part {index}", *lines[first - 1 : last], f"{space}{sign} <<< part {index}"]
    return "\n".join(lines) + "\n"


def without_marks(text: str) -> str:
    """Take the marks out of a source that was written with them."""
    return _MARK.sub("", text)


def read_parts(text: str) -> dict[int, str]:
    """Find the parts that an answer gives between their marks, by number."""
    return {int(number): body for number, body in _PART.findall(text if text.endswith("\n") else text + "\n")}


def replaced(source: str, anchors: tuple[Anchor, ...], parts: dict[int, str]) -> tuple[str, str]:
    """Put the given parts in place of the anchored ones: the new source, or an empty one and what is wrong."""
    unknown = [number for number in parts if not 1 <= number <= len(anchors)]
    if unknown:
        return "", f"There is no part {unknown[0]}: the parent has {len(anchors)} marked."
    lines = source.splitlines()
    for number in sorted(parts, reverse=True):
        anchor = anchors[number - 1]
        lines[anchor.first - 1 : anchor.last] = without_marks(parts[number]).rstrip().splitlines()
    return "\n".join(lines) + "\n", ""


def outside_change(source: str, anchors: tuple[Anchor, ...], new: str) -> str:
    """What a new source changes outside of the anchored parts of its parent, in words; empty where nothing is changed there.

    The lines outside must all be there, in their order, with nothing between them; blank lines and spaces at the end of a line do not
    count, and what is added right beside a part is in it.
    """
    lines = [line.rstrip() for line in source.splitlines()]
    kept, start = [], 0
    for anchor in anchors:
        kept.append(lines[start : anchor.first - 1])
        start = anchor.last
    kept.append(lines[start:])
    there = [line.rstrip() for line in new.splitlines() if line.strip()]
    segments = [[line for line in segment if line] for segment in kept]
    position = 0
    for index, segment in enumerate(segments):
        found = _place(segment, there, position, fixed=index == 0, ends=index == len(segments) - 1)
        if found is None:
            lost = next((line for line in segment if line not in there[position:]), segment[0] if segment else "")
            return f"The answer changes what lies outside of the marked parts, near `{lost.strip()[:120]}`."
        position = found + len(segment)
    return ""


def _place(segment: list[str], there: list[str], position: int, *, fixed: bool, ends: bool) -> int | None:
    """Where a run of lines stands in the new source from `position` on; None where it does not."""
    if ends:
        at = len(there) - len(segment)
        return at if at >= position and there[at:] == segment else None
    last = position if fixed else len(there) - len(segment)
    return next((at for at in range(position, last + 1) if there[at : at + len(segment)] == segment), None)


def _python_parts(tree: ast.Module, wanted: set[str]) -> Iterator[Anchor]:
    """Functions with a wanted name, functions that name one of them, and beside these the forward of ModelNew with its packing."""
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    named = {node.name for node in functions} & wanted
    host = {id(node) for node in _host_methods(tree)} if named else set()
    for node in functions:
        uses = {inner.id for inner in ast.walk(node) if isinstance(inner, ast.Name)} & named
        if node.name in named or uses or id(node) in host:
            first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
            yield Anchor(first, node.end_lineno or first, "#")


def _host_methods(tree: ast.Module) -> Iterator[ast.FunctionDef]:
    """`forward` and `pack_weights` of ModelNew."""
    for owner in tree.body:
        if isinstance(owner, ast.ClassDef) and owner.name == "ModelNew":
            yield from (node for node in owner.body if isinstance(node, ast.FunctionDef) and node.name in ("forward", "pack_weights"))
