"""bfloat16 and float8 in numpy."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from tools.evaluation.untrusted.interpreter.short_floats import BF16, FP8_E4M3, FP8_E5M2, ShortFloat, decoded, encoded, rounded

PAIRS = [(BF16, torch.bfloat16, torch.uint16), (FP8_E4M3, torch.float8_e4m3fn, torch.uint8), (FP8_E5M2, torch.float8_e5m2, torch.uint8)]


@pytest.mark.parametrize(("form", "dtype", "word"), PAIRS)
def test_every_pattern_has_its_value(form: ShortFloat, dtype: torch.dtype, word: torch.dtype) -> None:
    """Every pattern of bits has the value that torch gives it, and comes back from it; a NaN comes back as a NaN."""
    patterns = torch.arange(2**form.bits).to(word)
    bits = patterns.numpy()
    values = decoded(bits, form)

    assert np.array_equal(values, patterns.view(dtype).float().numpy(), equal_nan=True)
    again = encoded(values, form)
    assert ((again == bits) | np.isnan(values)).all()
    assert (np.isnan(decoded(again, form)) == np.isnan(values)).all()


@pytest.mark.parametrize(("form", "dtype", "word"), PAIRS)
def test_rounding_is_torchs_within_range(form: ShortFloat, dtype: torch.dtype, word: torch.dtype) -> None:
    """Numbers within a format's range, ties and denormals among them, are rounded as torch rounds them."""
    patterns = torch.arange(2 ** (form.bits - 1)).to(word).view(dtype).float()
    known = patterns[patterns.isfinite()].unique()
    between = torch.cat([known, (known[1:].double() + known[:-1].double()).div(2).float(), known * 1.03125])
    between = torch.cat([between, -between])
    between = between[between.abs() <= form.largest]
    assert torch.equal(torch.from_numpy(rounded(between.numpy(), form)), between.to(dtype).float())


def test_float8_saturates_and_bfloat16_does_not() -> None:
    """What is larger than a float8's largest number becomes that number, infinities too; of bfloat16 it becomes an infinity."""
    large = np.array([np.inf, -3.4e38, 1e9], np.float32)
    assert rounded(large, FP8_E4M3).tolist() == [448, -448, 448]
    assert rounded(large, FP8_E5M2).tolist() == [57344, -57344, 57344]
    assert rounded(large[:2], BF16).tolist() == [np.inf, -np.inf]
