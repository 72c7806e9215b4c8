"""Triton kernels of a candidate's source."""

from __future__ import annotations

import ast

from tools.syntax import parsed


def kernel_names(source: str) -> tuple[str, ...]:
    """Names of the functions decorated with `triton.jit` (or a heuristic around it); none where the text is no Python."""
    try:
        tree = parsed(source)
    except (SyntaxError, ValueError):
        return ()
    functions = (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))
    return tuple(f.name for f in functions if any("triton" in ast.unparse(d) and "jit" in ast.unparse(d) for d in f.decorator_list))
