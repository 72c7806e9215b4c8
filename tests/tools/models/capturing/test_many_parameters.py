"""An operator of many parameters, as a block of experts has them: more than a schema of PyTorch's has arguments."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest
import torch

from tools.models.runtime.operators import KernelOperator

COUNT = 200
KERNEL = f"""
import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        for place in range({COUNT}):
            self.register_parameter(f"weight_{{place}}", nn.Parameter(torch.zeros(3)))

    def forward(self, x):
        return x + sum(self._parameters.values())
"""


def test_parameters_beyond_what_a_schema_takes_are_a_list(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is called with all tensors one after the other, in eager mode and by torch.compile, which keeps it whole."""
    (tmp_path / "many_parameters.py").write_text(KERNEL)
    monkeypatch.syspath_prepend(str(tmp_path))
    importlib.import_module("many_parameters")
    names = [f"weight_{place}" for place in range(COUNT)]
    operator = KernelOperator("many", "added", "many_parameters", 1, names, lambda x: [x.new_empty(x.shape)], ())
    x, held = torch.rand(2, 3), [torch.rand(3) for _ in range(COUNT)]
    wanted = x + sum(held)
    with torch.no_grad():
        assert torch.allclose(operator.call(x, *held)[0], wanted)
        compiled = torch.compile(lambda *tensors: operator.call(*tensors)[0] * 2.0, fullgraph=True, backend="aot_eager")
        assert torch.allclose(compiled(x, *held), wanted * 2.0)
