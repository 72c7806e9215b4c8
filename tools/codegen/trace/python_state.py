"""Whether a reference's forward leaves something behind in Python, read from its source."""

from __future__ import annotations

import ast

from tools.records import Problem, ProblemForm
from tools.syntax import parsed


def keeps_state(problem: Problem) -> bool:
    """Whether a call of the reference may assign attributes of its module: a replay would not.

    Looked at are `forward` and every method whose name it, or what it reaches, reads from anything; what only a constructor calls is not.
    """
    if problem.form is not ProblemForm.KERNELBENCH:
        return False
    return any(_writes_to_self(node) for method in _called_methods(parsed(problem.source)) for node in ast.walk(method))


def _writes_to_self(node: ast.AST) -> bool:
    """Whether a statement's part assigns an attribute of self, an item of one, or one by a computed name."""
    if isinstance(node, ast.Call):
        return isinstance(node.func, ast.Name) and node.func.id in ("setattr", "delattr")
    if not isinstance(node, ast.Attribute | ast.Subscript) or not isinstance(node.ctx, ast.Store | ast.Del):
        return False
    place: ast.expr = node
    while isinstance(place, ast.Attribute | ast.Subscript):
        place = place.value
    return isinstance(place, ast.Name) and place.id == "self"


def _called_methods(tree: ast.Module) -> list[ast.FunctionDef]:
    """List the methods that a call may reach, by name alone.

    All but constructors where one reads attributes by computed names, or anything registers a hook.
    """
    written = [method for owner in ast.walk(tree) if isinstance(owner, ast.ClassDef) for method in owner.body]
    methods = [method for method in written if isinstance(method, ast.FunctionDef) and method.name != "__init__"]
    if any(isinstance(node, ast.Attribute) and node.attr.startswith("register_") and "hook" in node.attr for node in ast.walk(tree)):
        return methods
    reached = [method for method in methods if method.name == "forward" or method.name.startswith("__")]
    for method in reached:
        nodes = list(ast.walk(method))
        if any(isinstance(node, ast.Name) and node.id in ("getattr", "vars") for node in nodes):
            return methods
        named = {node.attr for node in nodes if isinstance(node, ast.Attribute)} | {node.id for node in nodes if isinstance(node, ast.Name)}
        reached.extend(one for one in methods if one.name in named and one not in reached)
    return reached
