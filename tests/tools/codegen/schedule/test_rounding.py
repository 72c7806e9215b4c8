"""Convolutions round under the policy `default` where cuDNN's do."""

from __future__ import annotations

import pytest

from tests.tools.codegen.harness import traced_text
from tools.codegen.schedule.rounding import policy_of_region
from tools.codegen.templates.shared.knob import may_round
from tools.records import DEFAULT_POLICY

TEXT = """
import torch
import torch.nn.functional as F

LONG = 300


def convolved(x, y):
    return {text}


def example_inputs():
    return torch.randn(2, {channels}, LONG), torch.randn({weight})
"""
ROUNDED = {
    "dense": ("F.conv1d(x, y, stride=3)", 16, "4, 16, 27", True),
    "few channels": ("F.conv1d(x, y, stride=3)", 8, "4, 8, 27", False),
    "one channel": ("F.conv1d(x, y, stride=3)", 1, "2, 1, 27", False),
    "groups": ("F.conv1d(x, y, groups=2)", 8, "4, 4, 27", False),
    "transposed": ("F.conv_transpose1d(x, y)", 1, "1, 4, 27", True),
    "transposed, groups": ("F.conv_transpose1d(x, y, groups=2)", 4, "4, 4, 27", True),
    "transposed, a stride": ("F.conv_transpose1d(x, y[..., :4], stride=2)", 4, "4, 4, 27", True),
    "transposed, a stride and wide windows": ("F.conv_transpose1d(x, y[..., :5], stride=2)", 4, "4, 4, 27", False),
}


@pytest.mark.parametrize("name", ROUNDED)
def test_convolutions_round_as_cudnns_do(name: str) -> None:
    """Those of many channels without groups and transposed ones do, but for strides in wide windows; others keep float32's digits."""
    text, channels, weight, rounds = ROUNDED[name]
    graph = traced_text(TEXT.format(text=text, channels=channels, weight=weight))[1]
    convolutions = [node.name for node in graph.nodes if node.op.startswith("conv")]
    assert may_round(policy_of_region(graph, convolutions, DEFAULT_POLICY)) == rounds


def test_convolutions_are_asked_one_by_one() -> None:
    """That of a network's 3 channels keeps float32's digits where the next one rounds."""
    text = TEXT.format(text="F.conv1d(F.conv1d(x, y), y.new_ones(4, 16, 3))", channels=3, weight="16, 3, 27")
    graph = traced_text(text)[1]
    convolutions = [node.name for node in graph.nodes if node.op.startswith("conv")]
    assert [may_round(policy_of_region(graph, [name], DEFAULT_POLICY)) for name in convolutions] == [False, True]


@pytest.mark.parametrize("both", [False, True])
def test_recurrent_layers_of_two_directions_keep_their_digits(both: bool) -> None:
    """CuDNN rounds those of one direction."""
    text = f"""
import torch

LONG = 12


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.cells = torch.nn.LSTM(16, 16, batch_first=True, bidirectional={both})

    def forward(self, x):
        return self.cells(x)[0]


def get_inputs():
    return [torch.randn(2, LONG, 16)]


def get_init_inputs():
    return []
"""
    graph = traced_text(text)[1]
    layers = [node.name for node in graph.nodes if node.op == "lstm"]
    assert layers
    assert may_round(policy_of_region(graph, layers, DEFAULT_POLICY)) is not both
