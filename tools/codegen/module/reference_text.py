"""The text of the reference that the emitted module keeps: its constructor, and the imports, constants and helpers this needs."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from tools.records import Problem
from tools.syntax import parsed

DROPPED = {"get_inputs", "get_init_inputs", "example_inputs"}
STANDARD_IMPORTS = {"import torch", "import triton", "import triton.language as tl", "from torch import nn", "import torch.nn as nn"}


@dataclass(frozen=True)
class KeptText:
    """What of a class-form reference goes into the emitted module."""

    imports: tuple[str, ...]
    """Those of `__future__`, which say how the rest is read, come first."""
    module: str
    """Constants, helper functions and classes, in order."""
    body: str
    """The class's statements but for `forward`, indented by four."""
    base: str
    """E.g. `nn.Module`."""
    names: frozenset[str]
    """Module-level names that are kept."""


def keep(problem: Problem) -> KeptText:
    """Read the reference's class out of its file."""
    tree = parsed(problem.source)
    entry = next(node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == problem.entry)
    members = [node for node in entry.body if not _is_forward(node) and not _is_docstring(node)]
    wanted = _names([*members, *entry.bases])
    everywhere = set().union(*map(_imported, tree.body))
    able = [node for node in tree.body if node is not entry and not _defined(node) & (DROPPED | everywhere) and not _is_for_a_program(node)]
    kept: list[ast.stmt] = []
    while found := [node for node in able if node not in kept and _defined(node) & wanted]:
        # a class may use another that stands after it
        kept += found
        wanted |= _names(list(found))
    kept.sort(key=tree.body.index)
    asked = [node for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom)]
    imports = [node for node in asked if _is_future(node) or _imported(node) & wanted]
    renamed = [_Rename(problem.entry).visit(node) for node in members]
    return KeptText(
        imports=tuple(text for text in (ast.unparse(node) for node in imports) if text not in STANDARD_IMPORTS),
        module="\n\n\n".join(_source(problem.source, node) for node in kept),
        body="\n\n".join(_indent(ast.unparse(ast.fix_missing_locations(node))) for node in renamed),
        base=ast.unparse(entry.bases[0]) if entry.bases else "nn.Module",
        names=frozenset(name for node in (*kept, *imports) for name in (_defined(node) | _imported(node))),
    )


def _is_forward(node: ast.stmt) -> bool:
    return isinstance(node, ast.FunctionDef) and node.name == "forward"


def _is_future(node: ast.stmt) -> bool:
    return isinstance(node, ast.ImportFrom) and node.module == "__future__"


def _is_docstring(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _names(nodes: list[ast.AST]) -> set[str]:
    return {child.id for node in nodes for child in ast.walk(node) if isinstance(child, ast.Name)}


def _is_for_a_program(node: ast.stmt) -> bool:
    return isinstance(node, ast.If) and "__name__" in _names([node.test])


def _defined(node: ast.AST) -> set[str]:
    """Names of the module that a statement of it binds or changes."""
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        return {node.name}
    if isinstance(node, ast.Expr):
        return _owner(node.value.func) if isinstance(node.value, ast.Call) and isinstance(node.value.func, ast.Attribute) else set()
    if isinstance(node, ast.Name | ast.Attribute | ast.Subscript):
        return set() if isinstance(node.ctx, ast.Load) else _owner(node)
    if isinstance(node, ast.expr) and not isinstance(node, ast.Tuple | ast.List | ast.Starred):
        return set()
    return set().union(*map(_defined, ast.iter_child_nodes(node)))


def _owner(node: ast.expr) -> set[str]:
    """Name what is changed where a part of it is."""
    while isinstance(node, ast.Attribute | ast.Subscript):
        node = node.value
    return {node.id} if isinstance(node, ast.Name) else set()


def _imported(node: ast.stmt) -> set[str]:
    if not isinstance(node, ast.Import | ast.ImportFrom):
        return set()
    return {(alias.asname or alias.name).split(".")[0] for alias in node.names}


def _source(text: str, node: ast.stmt) -> str:
    marks = [f"@{ast.unparse(mark)}" for mark in getattr(node, "decorator_list", ())]
    return "\n".join([*marks, ast.get_source_segment(text, node) or ast.unparse(node)])


def _indent(text: str) -> str:
    return "\n".join("    " + line if line else line for line in text.splitlines())


class _Rename(ast.NodeTransformer):
    """`super(Model, self)` becomes `super()`, other mentions of the class become `ModelNew`; docstrings go."""

    def __init__(self, entry: str) -> None:
        self.entry = entry

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        if isinstance(node.func, ast.Name) and node.func.id == "super":
            node.args = []
        return node

    def visit_Name(self, node: ast.Name) -> ast.AST:
        if node.id == self.entry:
            node.id = "ModelNew"
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        self.generic_visit(node)
        if len(node.body) > 1 and _is_docstring(node.body[0]):
            node.body = node.body[1:]
        return node
