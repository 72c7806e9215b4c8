"""What stands in for a GPU while a plan is recorded: cuDNN's fused convolutions have a shape and a layout without a device."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

TEXT = """
import json
import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from tools.evaluation.untrusted import gpu_stand_in
from tools.hardware import load_sheet

gpu_stand_in.install(load_sheet("h100"))
last, sides, made = torch.channels_last, {"x": (2, 16, 8, 8), "weight": (32, 16, 3, 3)}, {}
with FakeTensorMode():
    for names in ("", "x", "weight", "x weight"):
        x, weight = (torch.empty(s).to(memory_format=last if n in names.split() else torch.contiguous_format) for n, s in sides.items())
        found = torch.ops.aten.cudnn_convolution_relu(x, weight, None, [1, 1], [1, 1], [1, 1], 1)
        made[names] = list(found.shape), list(found.stride())
print(json.dumps(made))
"""


@pytest.fixture(scope="module")
def made() -> dict[str, list[list[int]]]:
    """The shapes and strides of all results, from one process: what stands in stays, and is no business of other tests."""
    return json.loads(subprocess.run([sys.executable, "-c", TEXT], capture_output=True, text=True, check=True, timeout=120).stdout)


@pytest.mark.parametrize("last", ["", "x", "weight", "x weight"])
def test_fused_convolutions_lie_as_cudnn_leaves_them(made: dict[str, list[list[int]]], last: str) -> None:
    """Channels come last in the result where they do so in the images or in the weights: what reads it is planned for that layout."""
    strides = [32 * 64, 1, 32 * 8, 32] if last else [32 * 64, 64, 8, 1]
    assert made[last] == [[2, 32, 8, 8], strides]
