"""Which expressions of a forward may move into a section of it: those of tensors and numbers alone, whose order does not matter."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Callable, Collection, Iterator
from typing import NamedTuple

ALLOWED = (
    ast.Attribute, ast.BinOp, ast.BoolOp, ast.Call, ast.Compare, ast.Constant, ast.Dict, ast.IfExp, ast.List, ast.Name, ast.Slice,
    ast.Starred, ast.Subscript, ast.Tuple, ast.UnaryOp, ast.boolop, ast.cmpop, ast.expr_context, ast.keyword, ast.operator, ast.unaryop,
)  # fmt: skip
WORKING = (ast.BinOp, ast.Call, ast.Compare, ast.UnaryOp)
"""Expressions that compute anything."""
LAZY = (ast.BoolOp, ast.DictComp, ast.GeneratorExp, ast.IfExp, ast.Lambda, ast.ListComp, ast.NamedExpr, ast.SetComp)
"""Expressions whose parts may not run, or run several times: a call inside stays where it is."""
OF_TENSORS = ("H", "T", "device", "dtype", "imag", "mH", "mT", "ndim", "real", "shape")
"""Attributes of a local name that are read in the section; any other is of an object, and read before."""
BUILTINS = ("abs", "bool", "float", "int", "len", "max", "min", "range", "round", "slice", "sum", "tuple")
WAITING = ("backward", "cpu", "cuda", "item", "numpy", "tolist")
DRAWING = ("bernoulli", "multinomial", "normal", "rand", "rand_like", "randint", "randint_like", "randn", "randn_like", "randperm")
SELF = "self"


class Attributes(NamedTuple):
    """What is known of a module's attributes, which are written `self.head.weight`."""

    is_value: Callable[[str], bool]
    """Whether one is a tensor or a plain value."""
    is_part: Callable[[str], bool]
    """Whether one is a module that may be called in a section."""


class Expressions:
    """Looks at the expressions of one forward."""

    def __init__(self, local: Collection[str], attributes: Attributes) -> None:
        """Take the forward's local names, and what is known of its module."""
        self._local, self._attributes = local, attributes

    def is_inner(self, node: ast.AST) -> bool:
        """Whether all of an expression may move."""
        if isinstance(node, ast.Call):
            # of a method what it is called on may move, not the method
            own = [node.func.value] if isinstance(node.func, ast.Attribute) and not self.part_of(node) else []
            return self.is_inner_call(node) and all(map(self.is_inner, (*own, *node.args, *node.keywords)))
        if chain := chain_of(node):
            return self._is_inner_chain(chain)
        return isinstance(node, ALLOWED) and all(map(self.is_inner, ast.iter_child_nodes(node)))

    def is_inner_call(self, node: ast.Call) -> bool:
        """Whether a part is called, or a function or a method of tensors that neither writes in place, nor waits, nor draws."""
        if self.part_of(node):
            return True
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        if not name or name[0].isupper() or name.endswith("_") or name in (*WAITING, *DRAWING):
            return False
        if isinstance(node.func, ast.Name):
            return name not in self._local and (name in BUILTINS or not hasattr(builtins, name))
        if not isinstance(node.func, ast.Attribute) or root_of(node.func) != SELF:
            return True
        chain = chain_of(node.func.value)
        return bool(chain) and self._is_inner_chain(chain)

    def part_of(self, node: ast.AST) -> str:
        """Name the module that is called, where it may be called in a section; empty for anything else."""
        chain = chain_of(node.func) if isinstance(node, ast.Call) else ""
        return chain.removeprefix(f"{SELF}.") if chain.startswith(f"{SELF}.") and self._attributes.is_part(chain) else ""

    def _is_inner_chain(self, chain: str) -> bool:
        return chain != SELF and (not chain.startswith(f"{SELF}.") or self._attributes.is_value(chain))

    def outer_names(self, node: ast.AST) -> Iterator[str]:
        """List what an expression reads from around it, in order: local names, and attributes of these and of `self`."""
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            for part in (*(() if self.part_of(node) else (node.func.value,)), *node.args, *node.keywords):
                yield from self.outer_names(part)
            return
        chain = chain_of(node)
        if not chain:
            for part in ast.iter_child_nodes(node):
                yield from self.outer_names(part)
            return
        name, *path = chain.split(".")
        if name == SELF:
            yield chain
        elif name in self._local:
            kept = next((place for place, each in enumerate(path) if each in OF_TENSORS), len(path))
            yield ".".join((name, *path[:kept]))

    def works(self, node: ast.AST) -> bool:
        """Whether anything is computed in it, or a module called."""
        return self.computes(node) or any(map(self.part_of, ast.walk(node)))

    def computes(self, node: ast.AST) -> bool:
        """Whether anything is computed in it, but for calls of modules."""
        signed = {id(each) for each in ast.walk(node) if isinstance(each, ast.UnaryOp) and isinstance(each.operand, ast.Constant)}
        return any(isinstance(each, WORKING) and id(each) not in signed and not self.part_of(each) for each in ast.walk(node))


def chain_of(node: ast.AST) -> str:
    """Write a name with attributes, `self.head.weight`; empty for anything else."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute) and (inner := chain_of(node.value)):
        return f"{inner}.{node.attr}"
    return ""


def root_of(node: ast.AST) -> str:
    """Name what the attributes, items and calls of an expression are taken of; empty where that is no name."""
    while isinstance(node, ast.Attribute | ast.Subscript):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""
