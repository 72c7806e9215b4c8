"""On a GPU: what cuDNN and cuBLAS with TF32 are under each policy. Run with `pytest -m gpu`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from tools.evaluation.trusted.tolerance import Tolerance, error_of
from tools.evaluation.wire.precision import set_precision
from tools.hardware.devices import first_device
from tools.problems import load_problem
from tools.records import PolicyName, Precision, PrecisionPolicy

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(first_device() is None, reason="this machine has no NVIDIA GPU"),
    pytest.mark.timeout(300),
]

ROUNDING = Precision(matmul_tf32=True, cudnn_tf32=True)
WORKS = {
    "torch.nn.functional.conv2d(x, y)": "torch.randn(16, 64, 56, 56), torch.randn(64, 64, 3, 3)",
    "x @ y": "torch.randn(512, 512), torch.randn(512, 512)",
}
CONVOLUTION, PRODUCT = WORKS


@pytest.fixture(autouse=True)
def flags() -> Iterator[None]:
    """Put torch's flags back."""
    yield
    set_precision(Precision())


def _passes(folder: Path, work: str, policy: PolicyName, precision: Precision) -> bool:
    """Whether the library with some flags is within a policy's limits."""
    file = folder / "work.py"
    file.write_text(f"import torch\n\n\ndef work(x, y):\n    return {work}\n\n\ndef example_inputs():\n    return {WORKS[work]}\n")
    tolerance = Tolerance(load_problem(file, PrecisionPolicy(name=policy)), {}, "cuda")
    x, y = tolerance.reference.inputs(3)
    truth = tolerance.truth(lambda: [x, y])
    limit = tolerance.limits([truth.scale])[0]
    set_precision(precision)
    found = torch.nn.functional.conv2d(x, y) if work == CONVOLUTION else x @ y
    error = error_of(tolerance.problem.abi.outputs[0], found, truth.reference[0], truth.oracle[0])
    return error.relative_l2 <= limit.relative_l2 and error.worst_row <= limit.worst_row


@pytest.mark.parametrize(
    ("work", "policy", "right"),
    [
        (CONVOLUTION, "default", True),
        (CONVOLUTION, "exact", False),
        (PRODUCT, "default", False),
        (PRODUCT, "exact", False),
        (PRODUCT, "tf32", True),
    ],
)
def test_tf32_of_the_library(tmp_path: Path, work: str, policy: PolicyName, right: bool) -> None:
    """TF32 of cuDNN is within `default` and not within `exact`; cuBLAS's is within neither, and within `tf32`."""
    assert _passes(tmp_path, work, policy, ROUNDING) is right


@pytest.mark.parametrize("work", WORKS)
def test_full_precision_meets_both(tmp_path: Path, work: str) -> None:
    """What is in float32 passes under `exact` and under `default`."""
    assert _passes(tmp_path, work, "exact", Precision())
    assert _passes(tmp_path, work, "default", Precision())
