"""What Triton's interpreter cannot judge is said with what mends it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools.evaluation.supervisor.interpretable import needs_sizes, obstacle
from tools.problems import load_problem, small_variants
from tools.problems.variants import with_sizes

SCALED = """
import torch

ROWS, HEIGHT, WIDTH = 64, 512, 640

def f(x):
    return x * torch.linspace(0, 1, {width}, device=x.device)

def example_inputs():
    return (torch.rand(ROWS, HEIGHT, WIDTH),)
"""


@pytest.mark.parametrize(("width", "held"), [("WIDTH", "WIDTH is used"), ("x.shape[-1]", "")])
def test_sizes_that_the_reference_uses_are_named_with_a_line_that_runs(width: str, held: str, tmp_path: Path) -> None:
    """The constants of the reference itself are kept, for a kernel may hold them; the file says where they may change."""
    file = tmp_path / "f.py"
    file.write_text(SCALED.format(width=width))
    problem = load_problem(file)
    said = needs_sizes(problem)
    assert ("SMALL_SIZES = [{" in said and held in said) if held else "SMALL_SIZES, sizes that" in said
    if held:
        line = said.split("or give the file ")[1].split(" (docs")[0]
        file.write_text(f"{file.read_text()}\n{line}\n")
        (variant,) = small_variants(load_problem(file))
        assert variant.sizes["WIDTH"] < 100
        assert with_sizes(problem, variant.sizes).abi.outputs[0].shape == variant.abi.inputs[0].shape
        assert obstacle(load_problem(file), (variant,)) == ("", "")
