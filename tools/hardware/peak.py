"""Which arithmetic rate of a device a precision policy allows."""

from __future__ import annotations

from tools.records import HardwareSheet

_TENSOR_RATES: dict[str, tuple[str, ...]] = {
    "default": (),
    "exact": (),
    "tf32": ("tf32_tflops",),
    "fp16": ("tf32_tflops", "fp16_tflops"),
    "bf16": ("tf32_tflops", "bf16_tflops"),
}
"""Tensor-core rates that each policy opens for float32 data in one product; `default` for matrix products, not for what cuDNN does."""

_OWN_RATE = {"float64": "fp64_tflops", "float32": "fp32_tflops", "float16": "fp16_tflops", "bfloat16": "bf16_tflops"}
"""The rate at which products of a dtype run without any loss beyond the dtype's own."""

_ONE_BYTE = frozenset({"float8_e4m3fn", "float8_e5m2"})
"""Formats whose products tensor cores make twice as fast as those of halves (NVIDIA's H100 and L40S, AMD's MI300X: their datasheets)."""

_SPLIT_PRODUCTS = 3
"""Half-precision products that make up one of float32 accuracy (high x high, high x low, low x high)."""


def peak_tflops(sheet: HardwareSheet, policy_name: str, dtype: str, *, split: bool = False) -> float:
    """Return the fastest product rate, in TFLOP/s, that `policy_name` allows for data of `dtype`.

    The dtype's own rate always counts; float32 data may also use the tensor cores that the policy names. A rate the
    device lacks falls back to its ordinary float32 cores, as integers do. With `split`, float32 products made of three
    half-precision ones count too: they can meet the exact policy, so a bound on what is possible at all must allow them.
    """
    own = getattr(sheet, _OWN_RATE.get(dtype, "fp32_tflops"))
    if dtype in _ONE_BYTE and sheet.fp16_tflops is not None:
        own = 2 * sheet.fp16_tflops
    allowed = [sheet.fp32_tflops if own is None else own]
    if dtype == "float32":
        allowed += [rate for field in _TENSOR_RATES[policy_name] if (rate := getattr(sheet, field)) is not None]
        if split and sheet.fp16_tflops is not None:
            allowed.append(sheet.fp16_tflops / _SPLIT_PRODUCTS)
    return float(max(allowed))
