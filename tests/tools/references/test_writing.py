"""Inductor writes in a process for references, for a device that need not be there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tools.hardware import load_sheet
from tools.inductor import candidate_text
from tools.problems import load_problem
from tools.records import Problem
from tools.references.writing import written_apart

REFERENCE = """import torch
import torch.nn.functional as F

def glance(x, k, index, cache):
    cache = cache.clone()
    cache[:, index] = x.softmax(-1)
    return F.scaled_dot_product_attention(cache[None, None], k[None, None], k[None, None])[0, 0]

def example_inputs():
    return torch.randn(64, 8), torch.randn(32, 128), torch.randperm(128)[:8], torch.randn(64, 128)
"""


@pytest.fixture(scope="module")
def problem(tmp_path_factory: pytest.TempPathFactory) -> Problem:
    """A softmax that is written into columns of a cache, and attention with the cache as queries."""
    file = tmp_path_factory.mktemp("problem") / "glance.py"
    file.write_text(REFERENCE)
    return load_problem(file)


def test_inductor_writes_triton_without_a_device(problem: Problem) -> None:
    """Kernels are for the sheet's device; attention is left to the library's choice, in the order that its fused kernels give."""
    written = written_apart(problem, (), load_sheet("h200"))
    assert written.refused == ""
    [program] = written.programs
    assert [operand.name for operand in program.operands] == ["x", "k", "index", "cache"]
    assert all(kernel.launchers and kernel.grid.startswith("Grid") for kernel in program.kernels.values())
    source = candidate_text(problem, written)
    assert "torch.nn.functional.scaled_dot_product_attention(" in source
    assert "libdevice.exp(" in source
    assert "inductor" not in source.replace("Inductor", "")


def test_over_its_limit_it_says_so(problem: Problem) -> None:
    """The process is ended, and the answer is one line."""
    assert written_apart(problem, (), load_sheet("h200"), limit_s=0.01).refused == "Inductor took longer than 0.01 s"


@pytest.mark.parametrize("write", ["cache[:, index] = x.softmax(-1)", "cache.t()[0].mul_(2)"])
def test_what_is_written_to_an_argument_is_written_there(tmp_path: Path, write: str) -> None:
    """Inductor's kernels write where the reference does, through whatever views it writes."""
    file = tmp_path / "written.py"
    file.write_text(REFERENCE.replace("    cache = cache.clone()\n", "").replace("cache[:, index] = x.softmax(-1)", write))
    problem = load_problem(file)
    written = written_apart(problem, (), load_sheet("h200"))
    assert written.refused == ""
    assert problem.abi.written == ("cache",)
    (cache,) = (f"arg{place}_1" for place, one in enumerate(written.programs[0].operands) if one.name == "cache")
    assert re.search(rf"\.run\(.*\b{cache}\b", written.programs[0].code)
