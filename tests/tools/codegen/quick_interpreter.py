"""Triton's interpreter with the same results for less of the processor's time.

Each of them is what Triton does, done in fewer steps: where this version of Triton has no such function, it stays as it is.
"""

from __future__ import annotations

import ast
import functools
import inspect
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from triton._utils import validate_block_shape
from triton.language import core
from triton.language.semantic import TritonSemantic
from triton.runtime import interpreter, jit

from tools.evaluation.untrusted.interpreter import patching


def install() -> None:
    """Speed up this process's interpreter."""
    if hasattr(TritonSemantic, "binary_op_sanitize_overflow_impl"):
        TritonSemantic.binary_op_sanitize_overflow_impl = _heard(TritonSemantic.binary_op_sanitize_overflow_impl)
    if hasattr(interpreter, "_get_np_dtype"):
        interpreter._get_np_dtype = _remembered(interpreter._get_np_dtype)
    patching.install()
    if hasattr(core, "_unwrap_if_constexpr"):
        core._unwrap_if_constexpr = _plain_first(core._unwrap_if_constexpr)
    if isinstance(core.block_type(core.int32, [1]).shape, core.tuple) and isinstance(core.tensor(None, core.int32).numel, core.constexpr):
        core.block_type.__init__ = _make_block_type
        core.tensor.__init__ = _make_tensor
        core.tuple.__eq__ = _numbers_first(core.tuple.__eq__)
        TritonSemantic.broadcast_impl_value = _alike_first(TritonSemantic.broadcast_impl_value)
        TritonSemantic.binary_op_type_checking_impl = _plain_types_first(TritonSemantic.binary_op_type_checking_impl)
    if hasattr(interpreter.FunctionRewriter, "_transform_ast"):
        interpreter.FunctionRewriter._transform_ast = _read_in_place
        if hasattr(interpreter.FunctionRewriter, "rewrite_ast") and hasattr(jit, "get_def_line_number"):
            interpreter.FunctionRewriter.rewrite_ast = _looked_up_once


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
    names: dict[str, str] = field(default_factory=dict)
    """Of types, by the names of their elements'."""


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
    name = known.names.get(element_ty.name)
    if name is None:
        name = known.names[element_ty.name] = f"<{known.text}, {element_ty}>"
    self.name = name


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
    """Hand back at once two scalars, or two blocks of one shape; spread a scalar without asking for the type's other form."""

    def broadcast(self: Any, lhs: Any, rhs: Any) -> Any:
        left, right = getattr(lhs.type, "known", _SCALAR), getattr(rhs.type, "known", _SCALAR)
        if left is right:
            return lhs, rhs
        if left is _SCALAR:
            return _spread(self, lhs, rhs.type), rhs
        if right is _SCALAR:
            return lhs, _spread(self, rhs, lhs.type)
        joined = _joined(tuple(left.sizes), tuple(right.sizes))
        if joined is None:
            return ask(self, lhs, rhs)
        return lhs if left is joined else _stretch(self, lhs, joined), rhs if right is joined else _stretch(self, rhs, joined)

    return broadcast


@functools.cache
def _joined(left: tuple[int, ...], right: tuple[int, ...]) -> _Shape | None:
    """Find the shape that both blocks are stretched to; None where it is for Triton to say."""
    if len(left) != len(right) or any(one != other and 1 not in {one, other} for one, other in zip(left, right, strict=True)):
        return None
    return _shape(tuple(max(one, other) for one, other in zip(left, right, strict=True)))


def _stretch(semantic: Any, block: Any, joined: _Shape) -> Any:
    return core.tensor(semantic.builder.create_broadcast(block.handle, joined.sizes), core.block_type(block.type.scalar, joined.sizes))


def _spread(semantic: Any, scalar: Any, block: Any) -> Any:
    """Make a block of one number, in the shape of another block's type."""
    kind = core.block_type(scalar.type, block.shape)
    return core.tensor(semantic.builder.create_splat(kind, scalar.handle), kind)


_PLAIN = {"fp32", "fp64", "int32", "int64", "int1"}
"""Types that two operands of one type are computed in, whatever is done with them."""


def _plain_types_first(ask: Callable[..., Any]) -> Callable[..., Any]:
    """Take two operands of one plain type as they are, and a Python number beside one of them in its type."""

    def check(self: Any, lhs: Any, rhs: Any, *given: bool, **named: bool) -> Any:
        left, right = type(lhs) is core.tensor, type(rhs) is core.tensor
        if left and right:
            if lhs.dtype.name == rhs.dtype.name and lhs.dtype.name in _PLAIN:
                return self.broadcast_impl_value(lhs, rhs)
        elif named.get("arithmetic_check", given[2] if len(given) > 2 else True):
            if left and _fits(rhs, lhs.dtype.name):
                return self.broadcast_impl_value(lhs, self.scalar_constant(rhs, dtype=lhs.dtype))
            if right and _fits(lhs, rhs.dtype.name):
                return self.broadcast_impl_value(self.scalar_constant(lhs, dtype=rhs.dtype), rhs)
        return ask(self, lhs, rhs, *given, **named)

    return check


def _fits(value: Any, name: str) -> bool:
    """Whether a number beside a tensor of a type is computed in that type."""
    return (name == "fp32" and type(value) is float) or (name in _NUMBERED and type(value) is int and -(2**31) <= value < 2**31)


_NUMBERED = {"fp32", "int32", "int64"}
"""Types that a whole number of 32 bits takes on."""


def _looked_up_once(self: Any) -> Any:
    """Rewrite a function whose lines are looked up once: Triton makes one for its compiler, too, to learn at which line it begins."""
    try:
        lines, first = inspect.getsourcelines(self.fn)
    except Exception:
        return self.fn
    self.filename, self.def_file_lineno = self.fn.__code__.co_filename, jit.get_def_line_number(lines, first)
    self.def_lineno = self._find_def(lines)
    return self._compile_and_exec(self._transform_ast(self._prepare_source(lines)))


def _read_in_place(self: Any, src: str) -> ast.AST:
    """Read a function at its lines of the file instead of numbering its lines anew afterwards."""
    tree: ast.AST = self.ast_transformer.visit(ast.parse("\n" * (self.def_file_lineno - 1) + src))
    return ast.fix_missing_locations(tree)
