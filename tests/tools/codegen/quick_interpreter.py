"""Triton's interpreter with the same results for less of the processor's time.

Each of the three is what Triton does, done in fewer steps: where this version of Triton has no such function, it stays as it is.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from triton.language import core
from triton.language.semantic import TritonSemantic
from triton.runtime import interpreter


def install() -> None:
    """Speed up this process's interpreter."""
    if hasattr(TritonSemantic, "binary_op_sanitize_overflow_impl"):
        TritonSemantic.binary_op_sanitize_overflow_impl = _heard(TritonSemantic.binary_op_sanitize_overflow_impl)
    if hasattr(interpreter, "_get_np_dtype"):
        interpreter._get_np_dtype = _remembered(interpreter._get_np_dtype)
    if hasattr(interpreter, "_LangPatchScope") and hasattr(interpreter, "_patch_lang"):
        interpreter._patch_lang = _once_a_launch(interpreter._patch_lang)


def _heard(ask: Callable[..., None]) -> Callable[..., None]:
    """Look whether whole numbers overflow only where that would be said, in debugging: elsewhere Triton drops what it found."""

    def check(self: Any, lhs: Any, rhs: Any, binary_op: Callable[..., Any]) -> None:
        if self.builder.options.debug:
            ask(self, lhs, rhs, binary_op)

    return check


def _remembered(ask: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Look numpy's types up by the names of Triton's."""
    known: dict[str, Any] = {}

    def dtype(kind: Any) -> Any:
        scalar = kind.element_ty if isinstance(kind, core.block_type) else kind
        if isinstance(scalar, core.pointer_type):
            return ask(scalar)
        if scalar.name not in known:
            known[scalar.name] = ask(scalar)
        return known[scalar.name]

    return dtype


def _once_a_launch(patch: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Replace the functions of the language that a module sees once a launch, not again with every call of a device function."""
    seen: set[tuple[bool, bool]] = set()

    def patched(function: Any) -> Any:
        names = function.__globals__.values()
        visible = (any(value is interpreter.tl for value in names), any(value is core for value in names))
        if visible in seen:
            return None
        scope, first = patch(function), not seen
        seen.add(visible)
        if first:
            restore = scope.restore
            scope.restore = lambda: (seen.clear(), restore())
        return scope

    return patched
