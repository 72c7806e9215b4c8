"""Has Triton's interpreter make once what it makes anew with every operation: types of blocks, shapes, and checks that find nothing.

These are most of the time of an interpreted kernel. What it computes, and which mistakes it refuses, stays the same. Where another
version of Triton has no such function, it stays as it is.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import triton.language as tl
import triton.language.core
import triton.language.semantic
import triton.runtime.interpreter

# Triton ships no types
core: Any = triton.language.core
interpreter: Any = triton.runtime.interpreter
semantic: Any = triton.language.semantic.TritonSemantic

_SHORT_FLOATS = frozenset({"fp16", "bf16"})
_KEPT_BY_ALL = frozenset({"fp32", "fp64", *(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)), "int1"})
"""Two operands of one of these stay what they are in every binary operation; short floats do but in a division."""
_PLAIN = frozenset({int, float, bool, str, type(None), tl.tensor, tl.dtype, tl.block_type})
"""Of whose members nothing is to be unwrapped."""

Function = Callable[..., Any]


def install() -> None:
    """Do so for the rest of this process."""
    for owner, name, shorter in (
        (core.block_type, "__init__", _blocks_known),
        (core.block_type, "with_element_ty", _twins_known),
        (core.block_type, "to_ir", _handed_on),
        (core.tensor, "__init__", _shapes_known),
        (core, "_unwrap_if_constexpr", _unwrapped),
        (semantic, "binary_op_type_checking_impl", _equal_operands),
        (semantic, "broadcast_impl_value", _equal_shapes),
        (semantic, "binary_op_sanitize_overflow_impl", _unread_check),
    ):
        if hasattr(owner, name):
            setattr(owner, name, shorter(getattr(owner, name)))


def _blocks_known(make: Function) -> Function:
    """A block's type is read and checked once for each dtype and sizes."""
    known: dict[Any, dict[str, Any]] = {}

    def init(self: Any, element_ty: Any, shape: Any) -> None:
        sizes = shape.values if isinstance(shape, core.tuple) else shape
        # 64.0 and 64 are the same key, and only one is a size
        if not all(type(size) is int for size in sizes) or not isinstance(element_ty, tl.dtype):
            make(self, element_ty, shape)
            return
        found = known.get(key := (element_ty.name, *sizes))
        if found is None:
            make(self, element_ty, shape)
            found = known[key] = {name: value for name, value in self.__dict__.items() if name != "element_ty"}
            found["_twins"] = {}
        self.__dict__.update(found)
        self.element_ty = element_ty

    return init


def _twins_known(make: Function) -> Function:
    """A block's type with another dtype is made once; those of pointers have more to them than a name."""

    def with_element_ty(self: Any, scalar_ty: Any) -> Any:
        twins = self.__dict__.get("_twins")
        if twins is None or type(scalar_ty) is not tl.dtype:
            return make(self, scalar_ty)
        found = twins.get(scalar_ty.name)
        if found is None:
            found = twins[scalar_ty.name] = make(self, scalar_ty)
        return found

    return with_element_ty


def _handed_on(make: Function) -> Function:
    """What the interpreter's builder takes for a block's type is made once."""

    def to_ir(self: Any, builder: Any) -> Any:
        if builder is not interpreter.interpreter_builder or type(self.element_ty) is not tl.dtype:
            return make(self, builder)
        found = self.__dict__.get("_handed_on")
        if found is None:
            found = self._handed_on = make(self, builder)
        return found

    return to_ir


def _shapes_known(make: Function) -> Function:
    """The shape that a tensor shows, constants of the language, is made once for each shape of a type."""

    def init(self: Any, handle: Any, type: Any) -> None:  # noqa: A002  # as Triton names it
        kept = type.shape.__dict__ if type.is_block() else type.__dict__
        found = kept.get("_shown")
        if found is None:
            make(self, handle, type)
            kept["_shown"] = self.shape, self.numel
            return
        self.handle, self.type, self.dtype = handle, type, type.scalar
        self.shape, self.numel = found

    return init


def _unwrapped(unwrap: Function) -> Function:
    """What is no constant and holds none is seen by its class."""

    def shorter(value: Any) -> Any:
        return value if value.__class__ in _PLAIN else unwrap(value)

    return shorter


def _equal_operands(check: Function) -> Function:
    """Tensors of the same type need neither a cast nor a broadcast."""

    def shorter(self: Any, lhs: Any, rhs: Any, *rest: Any, **more: Any) -> Any:
        if lhs.__class__ is core.tensor and rhs.__class__ is core.tensor and lhs.shape.values == rhs.shape.values:
            name, divides = lhs.dtype.name, more.get("div_or_mod") or rest[3:4] == (True,)
            same = lhs.type.is_block() == rhs.type.is_block() and name == rhs.dtype.name
            if same and (name in _KEPT_BY_ALL or (name in _SHORT_FLOATS and not divides)):
                return lhs, rhs
        return check(self, lhs, rhs, *rest, **more)

    return shorter


def _equal_shapes(broadcast: Function) -> Function:
    """Blocks of the same sizes need no broadcast."""

    def shorter(self: Any, lhs: Any, rhs: Any) -> Any:
        one, other = lhs.type, rhs.type
        if one.is_block() and other.is_block() and one.shape.values == other.shape.values:
            return lhs, rhs
        return broadcast(self, lhs, rhs)

    return shorter


def _unread_check(check: Function) -> Function:
    """Integers are held against their limits only where a failed assertion would be raised, which is in debugging."""

    def shorter(self: Any, lhs: Any, rhs: Any, binary_op: Any) -> None:
        if self.builder.options.debug:
            check(self, lhs, rhs, binary_op)

    return shorter
