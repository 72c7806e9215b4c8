"""NVIDIA's libdevice in the interpreter."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import triton.language as tl
import triton.language.extra.cuda.libdevice as native
import triton.language.extra.libdevice as named
from triton.runtime import interpreter

from tools.evaluation.untrusted.interpreter.libdevice import _on_blocks, functions

OPS: Any = interpreter


def _block(values: np.ndarray, dtype: Any) -> Any:
    return tl.tensor(OPS.TensorHandle(values, dtype), tl.block_type(dtype, list(values.shape)))


def test_every_function_is_one_of_libdevices() -> None:
    """No name is made up: Triton has all of them, and NVIDIA's devices all but one that has another name there."""
    assert all(hasattr(named, name) for name in functions())
    assert {name for name in functions() if not hasattr(native, name)} == {"fast_tanhf"}


@pytest.mark.parametrize(
    ("name", "values", "expected"),
    [
        ("round", [0.5, -1.5, 2.4, -0.2], [1.0, -2.0, 2.0, 0.0]),
        ("rint", [0.5, -1.5, 2.4, 2.5], [0.0, -2.0, 2.0, 2.0]),
        ("isnan", [np.nan, 1.0, np.inf, 0.0], [1, 0, 0, 0]),
        ("ilogb", [8.0, 0.75, 1.0, 2.0], [3, -1, 0, 1]),
        ("rsqrt", [4.0, 16.0, 0.25, 1.0], [0.5, 0.25, 2.0, 1.0]),
    ],
)
def test_functions_give_what_the_device_gives(name: str, values: list[float], expected: list[float]) -> None:
    """Roundings, predicates as integers, and exponents, on blocks of their own shape."""
    made = _on_blocks(name, functions()[name])(_block(np.array(values, np.float32), tl.float32))
    assert made.handle.data.tolist() == expected
    assert [int(size) for size in made.shape] == [4]


def test_a_number_beside_a_block_is_taken() -> None:
    """A Python number is spread over the block."""
    made = _on_blocks("pow", functions()["pow"])(_block(np.array([1.0, 2.0, 3.0, 4.0], np.float32), tl.float32), 2.0)
    assert made.handle.data.tolist() == [1.0, 4.0, 9.0, 16.0]


def test_half_precision_is_refused_as_on_a_device() -> None:
    """Libdevice has float32 and float64 alone."""
    with pytest.raises(TypeError, match="takes float32 and float64"):
        _on_blocks("exp", functions()["exp"])(_block(np.zeros(4, np.float16), tl.float16))
