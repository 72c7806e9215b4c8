"""Gives Triton's interpreter the mathematical functions of NVIDIA's libdevice, which it only has as names without a body."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch

_SAME = (
    *("abs", "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sin", "cos", "tan", "tanh", "sinh", "cosh", "asin", "acos", "atan"),
    *("asinh", "acosh", "atanh", "sqrt", "rsqrt", "erf", "erfc", "erfinv", "lgamma", "floor", "ceil", "trunc"),
    *("pow", "atan2", "fmod", "copysign", "hypot", "nextafter", "ldexp"),
)
"""Functions that torch has under the same name."""
_RENAMED = {
    "rint": "round", "nearbyint": "round", "sqrt_rn": "sqrt", "div_rn": "div", "fast_dividef": "div", "fast_expf": "exp",
    "fast_logf": "log", "fast_log2f": "log2", "fast_log10f": "log10",
    "fast_sinf": "sin", "fast_cosf": "cos", "fast_tanf": "tan", "fast_tanhf": "tanh",
    "fast_powf": "pow", "fma": "addcmul", "isnan": "isnan", "isinf": "isinf", "finitef": "isfinite", "isfinited": "isfinite",
    "signbit": "signbit", "cyl_bessel_i0": "i0", "cyl_bessel_i1": "special.i1", "j0": "special.bessel_j0", "j1": "special.bessel_j1",
    "y0": "special.bessel_y0", "y1": "special.bessel_y1", "normcdf": "special.ndtr", "normcdfinv": "special.ndtri",
    "erfcx": "special.erfcx",
}  # fmt: skip


def functions() -> dict[str, Callable[..., torch.Tensor]]:
    """List what the interpreter is given, by libdevice's names, as functions of torch tensors."""
    import operator

    import torch

    found: dict[str, Callable[..., torch.Tensor]] = {name: getattr(torch, name) for name in _SAME}
    found |= {name: operator.attrgetter(path)(torch) for name, path in _RENAMED.items()}
    found["fma"] = lambda a, b, c: torch.addcmul(c, a, b)
    # to the nearest, and halves away from zero
    found["round"] = lambda x: torch.copysign(torch.floor(x.abs() + 0.5), x)
    found["llrint"] = lambda x: torch.round(x).to(torch.int64)
    found["ilogb"] = lambda x: torch.frexp(x)[1] - 1
    found["rcp_rn"] = torch.reciprocal
    return found


def install() -> None:
    """Put the functions in their places for the rest of this process."""
    import triton.language.extra.cuda.libdevice as cuda
    import triton.language.extra.libdevice as common

    for name, function in functions().items():
        for module in (common, cuda):
            if hasattr(module, name):
                setattr(module, name, _on_blocks(name, function))


def _on_blocks(name: str, function: Callable[..., torch.Tensor]) -> Callable[..., Any]:
    """Have a function of torch tensors take and give what the interpreter computes with."""
    import numpy as np
    import torch
    import triton.language as tl
    from triton.runtime import interpreter

    handle: Any = interpreter.TensorHandle
    floats = {np.dtype(np.float32): tl.float32, np.dtype(np.float64): tl.float64}
    dtypes = {**floats, np.dtype(np.int32): tl.int32, np.dtype(np.int64): tl.int64}

    def run(*given: Any, _semantic: Any = None, **_: Any) -> Any:
        arrays = [one.handle.data if isinstance(one, tl.tensor) else np.array([one], dtype=np.float32) for one in given]
        if arrays[0].dtype not in dtypes:
            raise TypeError(f"libdevice.{name} takes float32 and float64, and was given {given[0].dtype}")
        result = function(*(torch.from_numpy(np.ascontiguousarray(array)) for array in arrays))
        made = (result.to(torch.int32) if result.dtype is torch.bool else result).numpy()
        dtype = dtypes[made.dtype]
        shape = list(next((one.shape for one in given if isinstance(one, tl.tensor) and len(one.shape)), ()))
        kind = tl.block_type(dtype, list(made.shape)) if shape else dtype
        return tl.tensor(handle(made, dtype), kind)

    return run
