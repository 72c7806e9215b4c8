"""Has Triton's interpreter replace the language's functions once a launch, and look for them once a process.

Triton does both again with every call of a device function, as `tl.sum` is one: most of the time of a kernel that reduces. Where another
version of Triton has no such function, it stays as it is.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import triton.language.core
import triton.runtime.interpreter

# Triton ships no types
core: Any = triton.language.core
interpreter: Any = triton.runtime.interpreter


def install() -> None:
    """Do so for the rest of this process."""
    if hasattr(interpreter, "_LangPatchScope") and hasattr(interpreter, "_patch_lang"):
        interpreter._patch_lang = _once_a_launch(interpreter._patch_lang)
    if hasattr(interpreter, "_patch_builtin") and hasattr(interpreter, "_patch_attr"):
        interpreter._patch_builtin = _listed_once(interpreter._patch_attr)
    if hasattr(interpreter, "_patch_lang_tensor"):
        interpreter._patch_lang_tensor = _with_whole_numbers(interpreter._patch_lang_tensor)


def _with_whole_numbers(patch: Callable[..., None]) -> Callable[..., None]:
    """Have the end of a loop be read as numpy allows it: Triton 3.6 makes a number of an array of one element, numpy 2.4 of none."""

    def patched(tensor: Any, scope: Any) -> None:
        patch(tensor, scope)
        scope.set_attr(tensor, "__index__", lambda self: int(self.handle.data.item()))

    return patched


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

            def restored() -> None:
                seen.clear()
                restore()

            scope.restore = restored
        return scope

    return patched


def _listed_once(replace: Callable[..., None]) -> Callable[[Any, Any, Any], None]:
    """List what is to be replaced in a module or class once a process, not again with every launch, and call what it wraps."""
    members: dict[Any, list[tuple[str, Any, Any]]] = {}

    def patch(package: Any, builder: Any, scope: Any) -> None:
        if package not in members:
            found = [(name, member) for name, member in inspect.getmembers(package) if core.is_builtin(member)]
            members[package] = [(name, member, _direct(member)) for name, member in found]
        for name, member, direct in members[package]:
            if direct is None:
                replace(package, name, member, builder, scope)
            else:
                scope.set_attr(package, name, direct)

    return patch


_WRAPPER = core.builtin(lambda: None).__code__
"""Of every function of the language: it looks whether it is called in a kernel."""


def _direct(member: Any) -> Any:
    """Make what calls the function that a wrapper wraps, as in a kernel; None where something else wraps it."""
    if getattr(member, "__code__", None) is not _WRAPPER:
        return None
    inner = member.__wrapped__

    def call(*args: Any, **given: Any) -> Any:
        given["_semantic"] = interpreter.interpreter_semantic
        return inner(*args, **given)

    return call
