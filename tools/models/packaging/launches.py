"""Reads a kernel's file: which Triton kernels its host code launches, where that is all it does beside PyTorch's own operators."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tools.syntax import parsed

PLAIN = ("len", "min", "max", "int", "range", "tuple", "super")
"""Functions of Python that host code may call."""
ROOTS = (
    "torch.ops.aten.",
    "torch.empty",
    "torch.zeros",
    "torch.full",
    "torch.nn.functional.",
    "F.",
    "triton.cdiv",
    "triton.next_power_of_2",
)
"""How calls begin that a compiler understands."""
METHODS = (
    "bfloat16", "bool", "chunk", "clone", "contiguous", "diagonal", "dim", "double", "element_size", "expand", "expand_as", "flatten",
    "float", "half",
    "int", "is_contiguous", "long", "movedim", "narrow", "new_empty", "numel", "permute", "repeat", "reshape", "reshape_as", "select",
    "size", "split", "squeeze", "storage_offset", "stride", "swapaxes", "t", "tensor_split", "to", "transpose", "type_as", "unbind",
    "unflatten", "unfold", "unsqueeze", "view", "view_as",
)  # fmt: skip
"""Of tensors."""
GUARD, ENTRY, PACKING = "guarded", "ModelNew", "self.refresh_weights"


def launches(kernel: str) -> tuple[str, ...]:
    """Name the kernels that a compiler may take into its own graph; none where host code does anything that it would not understand."""
    return _launches(kernel, None)


def launches_packed(kernel: str) -> tuple[str, ...]:
    """Name the kernels of a file that packs weights at first, where all else is as `launches` wants it."""
    return _launches(kernel, PACKING) if PACKING in kernel else ()


def _launches(kernel: str, packing: str | None) -> tuple[str, ...]:
    body = [node for node in parsed(kernel).body if not (isinstance(node, ast.FunctionDef) and node.name == GUARD)]
    functions = [node for node in body if isinstance(node, ast.FunctionDef)]
    kernels = {node.name for node in functions if any(_name(one) == "triton.jit" for one in node.decorator_list)}
    hosts = {node.name: node for node in functions if not node.decorator_list}
    if len(kernels) + len(hosts) < len(functions) or not kernels:
        return ()
    entries = [node for node in body if isinstance(node, ast.ClassDef)]
    forwards = [part for node in entries for part in node.body if isinstance(part, ast.FunctionDef) and part.name == "forward"]
    if [node.name for node in entries] != [ENTRY] or len(forwards) != 1:
        return ()
    # what packs weights is no part of a call
    asked = [*forwards, *_reached(forwards[0], hosts)] if packing else [*hosts.values(), *forwards]
    found = [_launched(node, kernels, set(hosts), packing) for node in asked]
    if any(names is None for names in found):
        return ()
    return tuple(dict.fromkeys(name for names in found for name in names or ()))


def _reached(forward: ast.FunctionDef, hosts: dict[str, ast.FunctionDef]) -> list[ast.FunctionDef]:
    """List the functions of the file that a forward calls, or these do."""
    found: dict[str, ast.FunctionDef] = {}
    left = [forward]
    while left:
        called = {_name(node.func) for node in _statements(left.pop()) if isinstance(node, ast.Call)}
        new = {name: hosts[name] for name in sorted(called & hosts.keys() - found.keys())}
        found |= new
        left += new.values()
    return list(found.values())


def _launched(function: ast.FunctionDef, kernels: set[str], hosts: set[str], packing: str | None) -> list[str] | None:
    """List what a function launches; None where a compiler would not understand it."""
    launched: list[str] = []
    for node in _statements(function):
        if isinstance(node, ast.Global | ast.Nonlocal | ast.Try | ast.With | ast.Lambda | ast.FunctionDef):
            return None
        if isinstance(node, ast.Attribute | ast.Subscript) and not isinstance(node.ctx, ast.Load):
            # what it keeps from call to call
            return None
        if not isinstance(node, ast.Call):
            continue
        if isinstance(node.func, ast.Subscript) and _name(node.func.value) in kernels:
            launched.append(_name(node.func.value))
        elif _name(node.func) != packing and not _understood(node.func, hosts):
            return None
    return launched


def _understood(function: ast.expr, hosts: set[str]) -> bool:
    name = _name(function)
    if isinstance(function, ast.Name):
        return name in hosts or name in PLAIN
    return name.startswith(ROOTS) or (isinstance(function, ast.Attribute) and not name.startswith("torch.") and function.attr in METHODS)


def _statements(function: ast.FunctionDef) -> Iterator[ast.AST]:
    for part in function.body:
        yield from ast.walk(part)


def _name(node: ast.expr) -> str:
    """Write a name with its dots; empty for anything else."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        inner = _name(node.value)
        return f"{inner}.{node.attr}" if inner else ""
    return ""
