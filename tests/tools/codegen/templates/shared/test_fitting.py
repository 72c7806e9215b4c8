"""Windows larger than their input: host functions refuse them before a kernel runs, as the reference does."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from benchmarks.guards.kernels import all_generated, load
from tests.tools.codegen.harness import traced_text
from tools.codegen import emit

SOURCE = """
import torch
import torch.nn.functional as F

BATCH = 4
HEIGHT = 48
WIDTH = 64


def sample(x, w):
    return {body}


def example_inputs():
    return torch.randn(BATCH, 4, HEIGHT, WIDTH), torch.randn({weight})
"""
WINDOWS = {
    "pooling": ("F.avg_pool2d(x, (2, 7)) + w", (1,)),
    "rounded up": ("F.max_pool2d(x, (2, 7), 2, ceil_mode=True) + w", (1,)),
    "padded": ("F.avg_pool3d(x, 3, 1, 1) + w", (1,)),
    "convolution": ("F.conv2d(x, w)", (8, 4, 3, 7)),
    "strided": ("F.conv2d(x, w, stride=(1, 2))", (8, 4, 3, 7)),
    "depthwise": ("F.conv2d(x, w, groups=4, padding=(1, 0))", (4, 1, 3, 7)),
    "transposed": ("F.conv_transpose2d(x, w, padding=(0, 2))", (4, 8, 3, 3)),
}
FITTING = {
    "pooling": ("F.max_pool2d(x, 3, 1, 1) + w", (1,)),
    "convolution": ("F.conv2d(x, w, padding=1)", (8, 4, 3, 3)),
    "depthwise": ("F.conv2d(x, w, groups=4, padding=1)", (4, 1, 3, 3)),
    "transposed": ("F.conv_transpose2d(x, w, stride=2)", (4, 8, 3, 3)),
}
SAID = "a window is larger than its input"


def source_of(body: str, weight: tuple[int, ...]) -> str:
    """Generate every region of a reference."""
    problem, graph = traced_text(SOURCE.format(body=body, weight=weight))
    return emit(problem, graph, all_generated(graph)).source


@pytest.mark.parametrize("name", WINDOWS)
def test_a_window_larger_than_its_input_is_an_error(name: str, tmp_path: Path) -> None:
    """Along the dimension that is too short the host function raises, and gives no result without elements."""
    body, weight = WINDOWS[name]
    module = load(source_of(body, weight), tmp_path)()
    with pytest.raises(AssertionError, match=SAID):
        module(torch.randn(2, 4, 48, 2), torch.randn(weight))


@pytest.mark.parametrize("name", FITTING)
def test_windows_that_fit_into_one_element_are_not_checked(name: str) -> None:
    """Where no size is too small, nothing is written."""
    assert SAID not in source_of(*FITTING[name])
