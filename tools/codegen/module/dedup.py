"""Deduplication: one function for all regions that would write the same one, since a network repeats its layers.

Two functions are alike when they differ in the names of their variables and in their docstrings alone. Each kernel and each host function
is compared by itself, so that regions whose settings differ still share a kernel. Fewer kernels are also fewer to compile.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache

from tools.codegen.templates.shared.frame import RegionText
from tools.syntax import parsed

HEAD = r'(\ndef {name}\((?:(?!\n\n)[^"])*:\n    """[^"\n]*\])\.?"""'
"""A function's head with a docstring of one line that ends in sizes."""


@dataclass
class Functions:
    """The functions written so far."""

    names: dict[str, str] = field(default_factory=dict)
    """By what a function does, however its variables are called: its name."""
    uses: Counter[str] = field(default_factory=Counter)
    """By name: of how many regions a function is."""

    def shared(self, region: RegionText) -> RegionText:
        """Leave out of a region's source what is written already; the host function's name may become another's."""
        lines = region.source.split("\n")
        parts = _parts(region.source)
        here: dict[str, str] = {}
        kept: list[str] = []
        for name, first, last in parts.places:
            text = _renamed("\n".join(lines[first - 1 : last]), here)
            if name:
                does = _meaning(text, parts.fixed)
                here[name] = self.names.setdefault(does, name)
                self.uses[here[name]] += 1
            if not name or here[name] == name:
                kept.append(text)
        pack = region.pack and replace(region.pack, function=here[region.pack.function])
        return replace(region, function=here[region.function], pack=pack, source="\n\n\n".join(kept))

    def annotated(self, source: str) -> str:
        """Say in a function's docstring that the sizes it names are those of one use of several."""
        for name, uses in self.uses.items():
            if uses > 1:
                note = f'\n\n    Written for {uses} regions; sizes are those of the first.\n    """'
                source = re.sub(HEAD.format(name=name), rf"\g<1>.{note}", source)
        return source


@dataclass(frozen=True)
class _Parts:
    """What a region's source consists of."""

    places: tuple[tuple[str, int, int | None], ...]
    """By statement: a function's name, or nothing; its first and last line."""
    fixed: frozenset[str]
    """Names by which arguments are passed."""


@lru_cache(maxsize=512)
def _parts(source: str) -> _Parts:
    """Take a region's source apart; a search writes the same regions again and again."""
    tree = parsed(source)
    fixed = frozenset(word.arg for node in ast.walk(tree) if isinstance(node, ast.Call) for word in node.keywords if word.arg)
    names = (node.name if isinstance(node, ast.FunctionDef) else "" for node in tree.body)
    return _Parts(tuple((name, _first_line(node), node.end_lineno) for name, node in zip(names, tree.body, strict=True)), fixed)


def _first_line(node: ast.stmt) -> int:
    """Where a statement begins, decorators included."""
    decorators = node.decorator_list if isinstance(node, ast.FunctionDef) else []
    return min([node.lineno, *(each.lineno for each in decorators)])


def _renamed(text: str, names: Mapping[str, str]) -> str:
    for name, other in names.items():
        if name != other:
            text = re.sub(rf"(?<![\w.]){name}(?!\w)", other, text)
    return text


@lru_cache(maxsize=512)
def _meaning(text: str, fixed: frozenset[str]) -> str:
    """Write a function with its own variables numbered in order and without its docstring; names by which callers pass arguments stay."""
    function = parsed(text).body[0]
    assert isinstance(function, ast.FunctionDef)
    if ast.get_docstring(function, clean=False) is not None:
        function.body = function.body[1:] or [ast.Pass()]
    own = [function.name, *(each.arg for each in _arguments(function.args))]
    nodes = [*ast.walk(function)]
    own += [node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)]
    numbers = {name: f"v{place}" for place, name in enumerate(dict.fromkeys(own)) if name not in fixed}
    function.name = "function"
    for node in nodes:
        if isinstance(node, ast.Name):
            node.id = numbers.get(node.id, node.id)
        elif isinstance(node, ast.arg):
            node.arg = numbers.get(node.arg, node.arg)
    return ast.dump(function)


def _arguments(arguments: ast.arguments) -> list[ast.arg]:
    """List what a function takes, in order."""
    return [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
