"""Triton's interpreter with the same results for less of the processor's time.

Each of them is what Triton does, done in fewer steps: where this version of Triton has no such function, it stays as it is.
"""

from __future__ import annotations

import ast
import inspect
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from triton._utils import validate_block_shape
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
    if hasattr(core, "_unwrap_if_constexpr"):
        core._unwrap_if_constexpr = _plain_first(core._unwrap_if_constexpr)
    if isinstance(core.block_type(core.int32, [1]).shape, core.tuple) and isinstance(core.tensor(None, core.int32).numel, core.constexpr):
        core.block_type.__init__ = _make_block_type
        core.tensor.__init__ = _make_tensor
        core.tuple.__eq__ = _numbers_first(core.tuple.__eq__)
        TritonSemantic.broadcast_impl_value = _alike_first(TritonSemantic.broadcast_impl_value)
    if hasattr(interpreter, "_patch_builtin") and hasattr(interpreter, "_patch_attr"):
        interpreter._patch_builtin = _listed_once(interpreter._patch_attr)
    if hasattr(interpreter.FunctionRewriter, "_transform_ast"):
        interpreter.FunctionRewriter._transform_ast = _read_in_place


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


def _plain_first(ask: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Hand back at once what is no constant of the language and holds none."""
    plain = {int, float, bool, type(None), core.tensor, core.dtype}

    def unwrap(value: Any) -> Any:
        return value if type(value) in plain else ask(value)

    return unwrap


@dataclass(frozen=True)
class _Shape:
    """What all blocks of a shape share."""

    sizes: Any
    """As a type has it: numbers."""
    numel: int
    text: str
    constants: Any
    """As a tensor has it: constants of the language."""
    constant_numel: Any


_shapes: dict[tuple[int, ...], _Shape] = {}
_by_sizes: dict[int, _Shape] = {}
"""By the identity of the sizes, which live as long as this does: most types are another's with other elements."""
_SCALAR = _Shape((), 1, "", core.tuple([]), core.constexpr(1))


def _shape(numbers: tuple[int, ...]) -> _Shape:
    """Make what blocks of a shape share once."""
    if numbers not in _shapes:
        numel = validate_block_shape(list(numbers))
        sizes, constants = core.tuple(numbers), core.tuple([core.constexpr(number) for number in numbers])
        _shapes[numbers] = _Shape(sizes, numel, str(sizes), constants, core.constexpr(math.prod(numbers)))
        _by_sizes[id(sizes)] = _shapes[numbers]
    return _shapes[numbers]


def _make_block_type(self: Any, element_ty: Any, shape: Any) -> None:
    """Make a block's type with its shape's numbers looked up."""
    known = _by_sizes.get(id(shape))
    if known is None:
        numbers = tuple([size if type(size) is int else core._unwrap_if_constexpr(size) for size in core._unwrap_if_constexpr(shape)])
        if not numbers:
            raise TypeError("0d block_type is forbidden")
        known = _shape(numbers)
    self.element_ty = element_ty
    self.known = known
    self.shape, self.numel = self.known.sizes, self.known.numel
    self.name = f"<{self.known.text}, {element_ty}>"


def _make_tensor(self: Any, handle: Any, type: Any) -> None:  # noqa: A002 - Triton's name
    """Make a tensor with its shape's constants looked up."""
    known = type.known if type.is_block() else _SCALAR
    self.handle, self.type, self.dtype = handle, type, type.scalar
    self.shape, self.numel = known.constants, known.constant_numel


def _numbers_first(ask: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """Compare two rows of numbers without unwrapping each of them."""

    def equal(self: Any, other: Any) -> Any:
        values = other.values if type(other) is core.tuple else other
        if type(values) is list and all(type(value) is int for value in values):
            return core.constexpr(self.values == values)
        return ask(self, other)

    return equal


def _alike_first(ask: Callable[[Any, Any, Any], Any]) -> Callable[[Any, Any, Any], Any]:
    """Hand back at once two scalars, or two blocks of one shape."""

    def broadcast(self: Any, lhs: Any, rhs: Any) -> Any:
        left, right = getattr(lhs.type, "known", _SCALAR), getattr(rhs.type, "known", _SCALAR)
        return (lhs, rhs) if left is right else ask(self, lhs, rhs)

    return broadcast


def _listed_once(replace: Callable[..., None]) -> Callable[[Any, Any, Any], None]:
    """List what is to be replaced in a module or class once a process, not again with every launch."""
    members: dict[Any, list[tuple[str, Any]]] = {}

    def patch(package: Any, builder: Any, scope: Any) -> None:
        if package not in members:
            members[package] = [(name, member) for name, member in inspect.getmembers(package) if core.is_builtin(member)]
        for name, member in members[package]:
            replace(package, name, member, builder, scope)

    return patch


def _read_in_place(self: Any, src: str) -> ast.AST:
    """Read a function at its lines of the file instead of numbering its lines anew afterwards."""
    tree: ast.AST = self.ast_transformer.visit(ast.parse("\n" * (self.def_file_lineno - 1) + src))
    return ast.fix_missing_locations(tree)
