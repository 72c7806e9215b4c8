"""A builder by which Triton's interpreter computes in bfloat16 and float8, which it takes for integers otherwise.

Values are held in float32 and rounded where a device rounds: at loads, stores, casts, and after every operation on tensors of
these dtypes. Products (`tl.dot`) multiply the operands exactly and add in float32. Seen in the code that Triton 3.9 makes for sm_90
and in what an H200 gave (tests/tools/evaluation/short_floats): `add.bf16`, `sub.bf16`, `mul.bf16` and `fma.rn.bf16` round once, division
and elementary functions are done in float32, conversions round to nearest even, those to float8 saturate. Not shared with a device: it
may fuse a product and a sum of bfloat16 (rounded twice here), and Hopper adds products of float8 with fewer digits than float32's.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import triton.language as tl
from triton.runtime import interpreter

from tools.evaluation.untrusted.interpreter.short_floats import SHORT_FLOATS, ShortFloat, decoded, encoded, rounded

# Triton ships no types
_triton: Any = interpreter
_Handle: Any = _triton.TensorHandle
_Builder: Any = _triton.InterpreterBuilder
_Reduction: Any = _triton.ReduceOps
_np_dtype: Callable[[Any], Any] = _triton._get_np_dtype
_fits: Callable[[Any, Any], bool] = _triton._validate_np_data_size
_unrounded_tensor: Callable[..., Any] = _triton.ReduceScanOpInterface.to_tensor
_unrounded_sum: Callable[..., Any] = _Reduction.sum
_ELEMENTARY = (np.exp, np.exp2, np.log, np.log2, np.sin, np.cos)
_CODES: dict[int, Any] = {16: np.uint16, 8: np.uint8}


def form_of(dtype: Any) -> ShortFloat | None:
    """Give the format of a Triton dtype, scalar or block; None for every other, pointers too."""
    return SHORT_FLOATS.get(dtype.scalar.name)


def held(data: np.ndarray, dtype: Any) -> np.ndarray:
    """Round what was computed to the dtype it was computed in; comparisons' results and other dtypes are left alone."""
    form = form_of(dtype)
    return data if form is None or data.dtype.kind != "f" else rounded(data, form)


def bits_of(handle: Any) -> Any:
    """Give a handle whose data are the bits of its values, as memory holds them."""
    form = form_of(handle.dtype)
    return handle if form is None else _handle(encoded(handle.data, form), handle.dtype)


def _handle(data: np.ndarray, dtype: Any) -> Any:
    return _Handle(data, dtype.scalar)


class ShortFloatBuilder(_Builder):  # type: ignore[misc]  # Triton ships no types
    """The interpreter's builder, with values of short floats held in float32."""

    def create_masked_load(self, ptrs: Any, mask: Any, other: Any, *rest: Any, **options: Any) -> Any:
        """Load bits, and give their values."""
        dtype = ptrs.get_element_ty()
        form = form_of(dtype)
        if form is None:
            return super().create_masked_load(ptrs, mask, other, *rest, **options)
        code = _CODES[form.bits]
        instead = np.zeros(ptrs.data.shape, code) if other is None else encoded(other.data, form)
        return _handle(decoded(_triton._interpreter.load(ptrs.data, mask.data, instead, code), form), dtype)

    def create_masked_store(self, ptrs: Any, value: Any, mask: Any, *rest: Any, **options: Any) -> Any:
        """Store the values' bits."""
        return super().create_masked_store(ptrs, bits_of(value), mask, *rest, **options)

    def create_splat(self, ret_ty: Any, arg: Any) -> Any:
        """Spread a number over a block; a comparison's result is a whole number to the interpreter then, and no mask (Triton 3.9)."""
        if arg.data.dtype != np.bool_:
            return super().create_splat(ret_ty, arg)
        return _Handle(np.full(ret_ty.shape, arg.data.flat[0]), tl.int1)

    def cast_impl(self, src: Any, dst_type: Any) -> Any:
        """Convert, and round to nearest even."""
        with np.errstate(all="ignore"):
            return _handle(held(src.data.astype(_held_as(dst_type)), dst_type), dst_type)

    def create_fp_to_fp(self, src: Any, dst_type: Any, rounding_mode: Any) -> Any:
        """Convert between floats, and round as is asked."""
        form = form_of(dst_type)
        if form is not None and rounding_mode == _triton._ir.ROUNDING_MODE.RTZ:
            return _handle(rounded(src.data, form, toward_zero=True), dst_type)
        if form is None and form_of(src.dtype) is None:
            return super().create_fp_to_fp(src, dst_type, rounding_mode)
        return self.cast_impl(src, dst_type)

    def create_bitcast(self, src: Any, dst_type: Any) -> Any:
        """Take the bits for another dtype's."""
        form = form_of(dst_type)
        bits: np.ndarray = bits_of(src).data
        if form is not None:
            return _handle(decoded(bits.view(_CODES[form.bits]), form), dst_type)
        return _handle(bits.view(_held_as(dst_type)), dst_type)

    def get_bf16(self, value: float) -> Any:
        """Make a constant."""
        return self.cast_impl(self.get_fp32(value), tl.bfloat16)

    def binary_op(self, lhs: Any, rhs: Any, op: Callable[..., Any]) -> Any:
        """Compute in float32 and round."""
        return self._rounded(super().binary_op(lhs, rhs, op))

    def ternary_op(self, lhs: Any, rhs: Any, other: Any, op: Callable[..., Any]) -> Any:
        """Compute in float32 and round."""
        return self._rounded(super().ternary_op(lhs, rhs, other, op))

    def unary_op(self, arg: Any, op: Callable[..., Any]) -> Any:
        """Compute in float32 and round; elementary functions in float64, as numpy's of float32 are biased: `exp2` near 1 by 0.1 ulp."""
        if op in _ELEMENTARY and arg.data.dtype == np.float32:
            with np.errstate(all="ignore"):
                return self._rounded(_handle(op(arg.data, dtype=np.float64).astype(np.float32), arg.dtype))
        return self._rounded(super().unary_op(arg, op))

    def create_fma(self, x: Any, y: Any, z: Any) -> Any:
        """Multiply and add with one rounding."""
        return self._rounded(super().create_fma(x, y, z))

    def create_fabs(self, arg: Any) -> Any:
        """Drop the sign."""
        return super().create_fabs(arg) if form_of(arg.dtype) is None else _handle(np.abs(arg.data), arg.dtype)

    def create_dot(self, a: Any, b: Any, d: Any, *rest: Any) -> Any:
        """Multiply exactly and add in float32."""
        if form_of(a.dtype) is None and form_of(b.dtype) is None:
            return super().create_dot(a, b, d, *rest)
        product = np.matmul(a.data.astype(np.float32), b.data.astype(np.float32)) + d.data
        return _handle(product.astype(d.data.dtype), d.dtype)

    def create_dot_scaled(self, *operands: Any) -> Any:
        """Hand the operands over as bits, which is what Triton's own expects."""
        return super().create_dot_scaled(*(bits_of(o) if isinstance(o, _Handle) and o.dtype.scalar.is_fp8() else o for o in operands))

    def create_atomic_rmw(self, rmw_op: Any, ptr: Any, val: Any, mask: Any, sem: Any, scope: Any) -> Any:
        """Add one element after the other; Triton knows no other atomic operation on short floats."""
        if form_of(val.dtype) is None:
            return super().create_atomic_rmw(rmw_op, ptr, val, mask, sem, scope)
        places, values, masks = (np.atleast_1d(h.data) for h in (ptr, val, mask))
        before = np.zeros(values.shape, np.float32)
        for index in np.ndindex(values.shape):
            place, allowed = _handle(places[index][None], ptr.dtype), _handle(masks[index][None], tl.int1)
            old = self.create_masked_load(place, allowed, None, None, None)
            before[index] = old.data[0]
            new = _handle(held(old.data + values[index], val.dtype), val.dtype)
            self.create_masked_store(place, new, allowed, None)
        return _handle(before, val.dtype)

    def create_atomic_cas(self, ptr: Any, cmp: Any, val: Any, sem: Any, scope: Any) -> Any:
        """Compare and swap bits."""
        found = super().create_atomic_cas(ptr, bits_of(cmp), bits_of(val), sem, scope)
        form = form_of(cmp.dtype)
        return found if form is None else _handle(decoded(found.data, form), cmp.dtype)

    def _rounded(self, made: Any) -> Any:
        return made if form_of(made.dtype) is None else _handle(held(made.data, made.dtype), made.dtype)


def install() -> None:
    """Have Triton's interpreter compute in short floats for the rest of this process."""
    _triton._get_np_dtype = _held_as
    _triton._validate_np_data_size = _is_held
    _triton.InterpreterBuilder = ShortFloatBuilder
    _triton.interpreter_builder.__class__ = ShortFloatBuilder
    _triton.ReduceScanOpInterface.to_tensor = _to_tensor
    _Reduction.sum = _sum


_holders: dict[str, Any] = {}
_fitting: dict[tuple[int, str], bool] = {}


def _held_as(dtype: Any) -> Any:
    """Give the numpy dtype that holds a Triton dtype's values; looked up once for each, as Triton makes a table to do it."""
    name = dtype.scalar.name
    if (found := _holders.get(name)) is None:
        found = _holders[name] = np.dtype(np.float32) if form_of(dtype) is not None else _np_dtype(dtype)
    return found


def _is_held(data: np.ndarray, dtype: Any) -> bool:
    """Tell whether data are no wider than what holds a dtype's values; that depends on no more than the two sizes."""
    if (found := _fitting.get(key := (data.itemsize, dtype.scalar.name))) is None:
        found = _fitting[key] = data.itemsize <= 4 if form_of(dtype) is not None else _fits(data, dtype)
    return found


def _to_tensor(self: Any, ret: Any, dtype: Any) -> Any:
    """Make a tensor of what a reduction or a scan computed."""
    return _unrounded_tensor(self, held(np.asarray(ret, dtype=np.float32), dtype) if form_of(dtype) is not None else ret, dtype)


def _sum(self: Any, given: Any) -> Any:
    """Add in a tree, as a device's threads do, rounding every sum to the tensor's dtype."""
    if form_of(given.dtype) is None:
        return _unrounded_sum(self, given)
    left = given.handle.data if self.axis is not None else given.handle.data.reshape(-1)
    axis = self.axis if self.axis is not None else 0
    while (count := left.shape[axis]) > 1:
        # Triton's extents are powers of two
        first, second = np.split(left, [count // 2], axis=axis)
        left = held(first + second, given.dtype)
    total = left if self.keep_dims and self.axis is not None else np.squeeze(left, axis=axis)
    return self.to_tensor(total.reshape((1,) * given.handle.data.ndim) if self.keep_dims and self.axis is None else total, given.dtype)
