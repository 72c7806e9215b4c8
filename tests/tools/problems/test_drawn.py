"""Random tensors that only the reference's own constructor could make again."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools.errors import UserError
from tools.problems import load_problem

REFERENCE = """
import torch


class Model(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        {made}

    def forward(self, x):
        return x + {read}


def get_inputs():
    return [torch.randn(4, 8)]


def get_init_inputs():
    return [8]
"""
REFUSED = {
    "an attribute": ("self.shift = torch.randn(width)", "self.shift", "shift"),
    "one of a list": ("self.shifts = [torch.zeros(8), torch.rand(width) * 2]", "self.shifts[1]", "shifts"),
    "whole numbers": ("self.order = torch.randperm(width)", "self.order", "order"),
    "a buffer": ("self.register_buffer('shift', torch.empty(width).normal_(), persistent=False)", "self.shift", "shift"),
    "a buffer of a part": (
        "self.part = torch.nn.Identity(); self.part.register_buffer('shift', torch.randn(width).abs(), persistent=False)",
        "self.part.shift",
        "part.shift",
    ),
}
TAKEN = {
    "a parameter": ("self.shift = torch.nn.Parameter(torch.randn(width))", "self.shift"),
    "a persistent buffer": ("self.register_buffer('shift', torch.randn(width))", "self.shift"),
    "a constant buffer": ("self.register_buffer('shift', torch.arange(8.0), persistent=False)", "self.shift"),
    "a weight of normed parameters": (
        "self.part = torch.nn.utils.weight_norm(torch.nn.Linear(width, width))",
        "self.part(x)",
    ),
    "what is made of a parameter": (
        "self.part = torch.nn.Parameter(torch.randn(width) * 0.1); self.shift = self.part.detach() * 2",
        "self.shift",
    ),
    "what nothing reads": ("self.shift = torch.randn(width)", "1.0"),
    "the shape of random numbers": ("self.shift = torch.ones_like(torch.randn(width))", "self.shift"),
}


def _file(folder: Path, made: str, read: str) -> Path:
    (folder / "shifted.py").write_text(REFERENCE.format(made=made, read=read))
    return folder / "shifted.py"


@pytest.mark.parametrize(("made", "read", "name"), REFUSED.values(), ids=REFUSED)
def test_random_tensors_outside_of_the_state_dict_are_refused(made: str, read: str, name: str, tmp_path: Path) -> None:
    """Every kernel would be wrong: one line says which tensor it is, and what to make of it."""
    with pytest.raises(UserError, match=f"its {name} is drawn at random and is not in the state dict") as raised:
        load_problem(_file(tmp_path, made, read))
    assert "persistent" in str(raised.value.mend)


@pytest.mark.filterwarnings("ignore:.*weight_norm.*:FutureWarning")
@pytest.mark.parametrize(("made", "read"), TAKEN.values(), ids=TAKEN)
def test_others_are_taken(made: str, read: str, tmp_path: Path) -> None:
    """What the state dict holds may be random, and constants may lie anywhere."""
    assert load_problem(_file(tmp_path, made, read)).abi.outputs[0].shape == (4, 8)
