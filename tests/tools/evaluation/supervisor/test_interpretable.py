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


MODULE = """
import torch

ROWS, WIDTH = 4096, 1024

class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(WIDTH, WIDTH)

    def forward(self, x):
        return self.layer(x)

def get_inputs():
    return [torch.rand(ROWS, WIDTH)]

def get_init_inputs():
    return []
"""


def test_sizes_of_a_modules_constructor_are_to_be_its_arguments(tmp_path: Path) -> None:
    """A kernel's module has the same constructor: what is a constant there is the same at every size."""
    file = tmp_path / "layer.py"
    file.write_text(MODULE)
    said = needs_sizes(load_problem(file))
    assert "WIDTH is used by the reference itself" in said
    assert "get_init_inputs()" in said
    assert "SMALL_SIZES" not in said


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
        variants = small_variants(load_problem(file))
        assert len({variant.sizes["WIDTH"] for variant in variants}) == 3
        assert max(variant.sizes["WIDTH"] for variant in variants) < 150
        assert all(with_sizes(problem, one.sizes).abi.outputs[0].shape == one.abi.inputs[0].shape for one in variants)
        assert obstacle(load_problem(file), variants) == ("", "")
