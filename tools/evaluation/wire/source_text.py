"""What the text of a candidate says by itself; nothing is imported."""

from __future__ import annotations

import ast

from tools.syntax import parsed

PACKING = "pack_weights"
"""Method of ModelNew that writes what its kernels read of its parameters: without arguments, called before forward, timed by itself."""


def declares_packing(source: str) -> bool:
    """Whether a candidate's text has a method by the step's name in some class; nothing is imported."""
    classes = (node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.ClassDef))
    return any(isinstance(item, ast.FunctionDef) and item.name == PACKING for node in classes for item in node.body)


def builds_extension(source: str) -> bool:
    """Whether a source may build an extension: only then is torch's builder worth importing."""
    return "cpp_extension" in source


def needs_device(source: str) -> bool:
    """Whether a source builds CUDA C++: it calls `load_inline` with CUDA sources; False for what is no Python."""
    try:
        tree = parsed(source)
    except (SyntaxError, ValueError, RecursionError):
        return False
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("load_inline")]
    return any(len(call.args) > 2 or any(keyword.arg in ("cuda_sources", None) for keyword in call.keywords) for call in calls)
