"""What PyTorch's libraries may round, in a process."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch

from tools.evaluation.wire.precision import set_precision
from tools.records import Precision, PrecisionPolicy


@pytest.fixture(autouse=True)
def flags() -> Iterator[None]:
    """Put torch's flags back."""
    yield
    set_precision(Precision())


def test_products_and_cudnn_have_a_flag_each() -> None:
    """What convolutions may round says nothing of products, and the other way round."""
    for products, convolutions in ((False, True), (True, False)):
        set_precision(Precision(matmul_tf32=products, cudnn_tf32=convolutions))
        assert (torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.allow_tf32) == (products, convolutions)


def test_flags_are_told_in_words() -> None:
    """What stands beside a figure says which flags it came about under."""
    said = [str(PrecisionPolicy.model_validate({"name": name}).precision) for name in ("default", "exact", "tf32")]
    assert said == ["TF32 on in cuDNN, off in matrix products", "TF32 off", "TF32 on"]


def test_only_tf32_rounds_in_both() -> None:
    """Under exact nothing is rounded, under tf32 products and convolutions are."""
    assert PrecisionPolicy(name="exact").precision == Precision()
    assert PrecisionPolicy(name="tf32").precision == Precision(matmul_tf32=True, cudnn_tf32=True)
