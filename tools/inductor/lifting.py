"""One function for several that differ in numbers alone: the numbers become names, each with its value in every function."""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

Number = int | float


class Lifted(NamedTuple):
    """Functions made one."""

    function: ast.FunctionDef
    values: tuple[tuple[Number, ...], ...]
    """For each of the functions, in order, the value of every lifted number."""


def skeleton(function: ast.FunctionDef) -> str:
    """A function without its name, its docstring and its numbers: functions with equal ones can become one."""
    bare = copy.deepcopy(function)
    bare.name = ""
    bare.body = _body(bare)
    for constant in _numbers(bare):
        constant.value = 0.0 if isinstance(constant.value, float) else 0
    return ast.dump(bare)


def lifted(functions: Sequence[ast.FunctionDef], name: Callable[[int], ast.expr]) -> Lifted:
    """Make functions of one skeleton the first of them, with `name(index)` in place of each number in which they differ."""
    made = copy.deepcopy(functions[0])
    places = list(zip(_numbers(made), *(_numbers(function) for function in functions), strict=True))
    values: dict[tuple[str, ...], tuple[Number, ...]] = {}
    replaced: dict[int, ast.expr] = {}
    for own, *all_of_them in places:
        numbers = tuple(constant.value for constant in all_of_them)
        # by repr: 1 and 1.0 are two literals, and no NaN equals another
        words = tuple(map(repr, numbers))
        if len(set(words)) > 1:
            values.setdefault(words, numbers)
            replaced[id(own)] = name(list(values).index(words))
    made = _Replace(replaced).visit(made)
    ast.fix_missing_locations(made)
    return Lifted(made, tuple(tuple(numbers[place] for numbers in values.values()) for place in range(len(functions))))


class _Replace(ast.NodeTransformer):
    def __init__(self, replaced: dict[int, ast.expr]) -> None:
        self._replaced = replaced

    def visit_Constant(self, node: ast.Constant) -> ast.expr:
        return self._replaced.get(id(node), node)


def _body(function: ast.FunctionDef) -> list[ast.stmt]:
    return function.body[1:] if ast.get_docstring(function) is not None else function.body


def _numbers(function: ast.FunctionDef) -> Iterator[ast.Constant]:
    for statement in _body(function):
        for node in ast.walk(statement):
            if isinstance(node, ast.Constant) and isinstance(node.value, int | float) and not isinstance(node.value, bool):
                yield node
