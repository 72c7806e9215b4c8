"""Triton kernels of a candidate's source."""

from __future__ import annotations

import ast

from tools.syntax import parsed


def kernel_names(source: str) -> tuple[str, ...]:
    """Names of the functions decorated with `triton.jit` (or a heuristic around it); none where the text is no Python."""
    return tuple(function.name for function in _kernels(source))


def kernel_excerpt(source: str, region: str, limit: int) -> str:
    """Cut the kernels that a region names out of a source, or where it names none all of them, whole ones only; empty where none fits."""
    found, wanted = _kernels(source), set(region.split("+"))
    chosen = [function for function in found if function.name in wanted] or found
    lines, kept = source.splitlines(), ""
    for function in chosen:
        first = min([function.lineno, *(decorator.lineno for decorator in function.decorator_list)])
        text = "\n".join(lines[first - 1 : function.end_lineno])
        if len(kept) + len(text) < limit:
            kept = f"{kept}\n\n{text}".strip()
    return kept


def _kernels(source: str) -> list[ast.FunctionDef]:
    try:
        tree = parsed(source)
    except (SyntaxError, ValueError):
        return []
    functions = (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))
    return [f for f in functions if any("triton" in ast.unparse(d) and "jit" in ast.unparse(d) for d in f.decorator_list)]
