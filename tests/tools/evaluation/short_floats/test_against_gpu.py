"""The interpreter's emulation of bfloat16 and float8 against what an H200 made of the same kernels (h200.jsonl)."""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
import zlib
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pytest
import torch

from tests.tools.evaluation.short_floats.cases import FORMATS, SIZE, Case, cases, codes, inputs

CASES = {case.name: case for case in cases()}
FUSED = ("multiply_add", "chain", "constants")
"""What the device's compiler made one operation of a product and a sum for: there it rounds once, and the emulation twice."""
SUMS = ("row_sum", "running_sum", "cumulative_sum")
"""Of bfloat16, rounded after every addition: their digits depend on the order."""
DOTS = {"dot float8": 0.0, "wide_dot float8": 5e-4, "dot bfloat16": 2e-7, "wide_dot bfloat16": 1e-6}
"""How far apart products may be in relative L2; Hopper's wgmma adds products of float8 with fewer digits than float32's."""
EXACT = [name for name in CASES if not name.startswith((*FUSED, *SUMS, "dot", "wide_dot"))]

Made = dict[str, torch.Tensor]


@pytest.fixture(scope="module")
def device() -> Made:
    """What the H200 gave, by the case's name."""
    return _read((Path(__file__).parent / "h200.jsonl").read_text().splitlines())


@pytest.fixture(scope="module")
def emulated() -> Made:
    """What the emulation gives."""
    command = [sys.executable, "-W", "ignore", "-m", "tests.tools.evaluation.short_floats.record", "emulated"]
    environment = os.environ | {"TRITON_INTERPRET": "1", "OMP_NUM_THREADS": "1"}
    return _read(subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout.splitlines())


@pytest.mark.parametrize("name", EXACT)
def test_it_gives_the_devices_numbers(device: Made, emulated: Made, name: str) -> None:
    """Loads, stores, casts, arithmetic of two numbers, comparisons and reductions in float32 give what the device gives, NaN for NaN."""
    real, made = (found[name][_defined(CASES[name])] for found in (device, emulated))
    different = ~((real == made) | (real.isnan() & made.isnan()))
    assert not different.any(), (real[different][:5], made[different][:5])


@pytest.mark.parametrize("name", [name for name in CASES if name.startswith(FUSED)])
def test_a_product_and_a_sum_differ_by_a_rounding(device: Made, emulated: Made, name: str) -> None:
    """Where the device fuses a product with a sum, results are apart by no more than roundings of bfloat16."""
    assert _apart(device[name], emulated[name]) < 1.5 * 2.0**-8


@pytest.mark.parametrize("name", [name for name in CASES if name.startswith(SUMS) and "float32" not in name])
def test_sums_are_as_wrong_as_the_devices(device: Made, emulated: Made, name: str) -> None:
    """Sums in bfloat16 lose about as many digits as the device's: neither hides nor invents an error."""
    rows = inputs(CASES[name])[0].double().view(16, -1)
    exact = rows.sum(1) if CASES[name].shape == (16,) else rows.cumsum(1).view(-1)
    real, made = _apart(exact, device[name]), _apart(exact, emulated[name])
    assert real / 3 < made < 3 * real


@pytest.mark.parametrize("name", [name for name in CASES if name.startswith(tuple(DOTS))])
def test_products_of_matrices_agree(device: Made, emulated: Made, name: str) -> None:
    """`tl.dot` of bfloat16 and float8 agrees with the device to the digits in which that one adds."""
    assert _apart(device[name], emulated[name]) <= next(limit for start, limit in DOTS.items() if name.startswith(start))


def _read(lines: Iterable[str]) -> Made:
    found = {}
    for line in map(json.loads, lines):
        case = CASES.get(line.get("case", ""))
        if case is None:
            continue
        assert "bits" in line, line
        dtype = FORMATS[case.target][0]
        like = codes(torch.zeros(1).to(dtype))
        data = np.frombuffer(zlib.decompress(base64.b64decode(line["bits"])), like.dtype)
        found[case.name] = torch.from_numpy(data.copy()).view(dtype).double()
    return found


def _defined(case: Case) -> torch.Tensor:
    """Mark the results that are defined: not of integers out of range, nor of infinities that Triton 3.6 and 3.9 lose from float8_e5m2."""
    given = inputs(case)[0].double()
    if case.target == "int32" and case.kernel == "cast":
        return given.abs() < 2.0**31
    if case.source == "float8_e5m2" and case.target == "bfloat16" and case.kernel == "cast":
        return given.isfinite()
    return torch.ones(case.shape if case.shape != (SIZE,) else given.shape, dtype=torch.bool).view(-1)


def _apart(one: torch.Tensor, other: torch.Tensor) -> float:
    finite = one.isfinite() & other.isfinite()
    return float((one - other)[finite].norm() / one[finite].norm())
