"""Host functions for several sizes made one where they differ in numbers alone, and the table that finds what fits a call's tensors."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import NamedTuple

from tools.inductor.lifting import Number, lifted, skeleton
from tools.inductor.records import RefusedError

Shapes = tuple[tuple[int, ...], ...]


class Sized(NamedTuple):
    """The host function for one size."""

    shapes: Shapes
    """Of its tensors, in order."""
    function: ast.FunctionDef


def programs_text(sized: Sequence[Sized]) -> str:
    """Write the host functions, the table `PROGRAMS` and the function `compiled` that looks into it."""
    groups: dict[str, list[Sized]] = {}
    for place, one in enumerate(sized):
        # the problem's own size has a function of its own, whose numbers stand where a tuner finds them
        groups.setdefault(skeleton(one.function) if place else "", []).append(one)
    functions: list[str] = []
    rows: dict[Shapes, tuple[str, tuple[Number, ...]]] = {}
    for index, group in enumerate(groups.values()):
        made = lifted([one.function for one in group], _numbered)
        name = f"program_{index}" if len(groups) > 1 else "program"
        made.function.name = name
        made.function.args.args.append(ast.arg("n"))
        functions.append(ast.unparse(made.function))
        for one, values in zip(group, made.values, strict=True):
            if rows.setdefault(one.shapes, (name, values)) != (name, values):
                raise RefusedError("two sizes of the problem have tensors of the same shapes, and Inductor writes another kernel for each")
    names = ", ".join(argument.arg for argument in sized[0].function.args.args)
    return "\n\n\n".join([*functions, _table(names, rows), _LOOK_UP])


def _numbered(index: int) -> ast.expr:
    return ast.Subscript(ast.Name("n", ast.Load()), ast.Constant(index), ast.Load())


def _table(names: str, rows: dict[Shapes, tuple[str, tuple[Number, ...]]]) -> str:
    lines = [f"    {shapes!r}: ({name}, {numbers!r})," for shapes, (name, numbers) in rows.items()]
    return "\n".join([f"# shapes of {names}: the function for them, and its numbers", "PROGRAMS = {", *lines, "}"])


_LOOK_UP = '''def compiled(*tensors):
    """Run what was written for tensors of these shapes."""
    shapes = tuple(tuple(tensor.shape) for tensor in tensors)
    if shapes not in PROGRAMS:
        raise ValueError(f"This kernel was not made for tensors of these shapes: {shapes}. It was made for {list(PROGRAMS)}.")
    program, n = PROGRAMS[shapes]
    return program(*tensors, n)'''
