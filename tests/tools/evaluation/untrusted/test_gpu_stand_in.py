"""What stands in for a GPU while a plan is recorded: cuDNN's fused convolutions have a shape and a layout without a device."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

TEXT = """
import json, sys
import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from tools.evaluation.untrusted import gpu_stand_in
from tools.hardware import load_sheet

gpu_stand_in.install(load_sheet("h100"))
last, sides = torch.channels_last, {"x": (2, 16, 8, 8), "weight": (32, 16, 3, 3)}
with FakeTensorMode():
    x, weight = (torch.empty(s).to(memory_format=last if n in sys.argv else torch.contiguous_format) for n, s in sides.items())
    made = torch.ops.aten.cudnn_convolution_relu(x, weight, None, [1, 1], [1, 1], [1, 1], 1)
print(json.dumps([list(made.shape), list(made.stride())]))
"""


@pytest.mark.parametrize("last", [(), ("x",), ("weight",), ("x", "weight")])
def test_fused_convolutions_lie_as_cudnn_leaves_them(last: tuple[str, ...]) -> None:
    """Channels come last in the result where they do so in the images or in the weights: what reads it is planned for that layout."""
    run = subprocess.run([sys.executable, "-c", TEXT, *last], capture_output=True, text=True, check=True, timeout=120)
    strides = [32 * 64, 1, 32 * 8, 32] if last else [32 * 64, 64, 8, 1]
    assert json.loads(run.stdout) == [[2, 32, 8, 8], strides]
