"""First choices are compiled without a GPU, and what does not compile is named."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.wild.compiles import compiled_apart, table
from benchmarks.wild.compiles_worker import CompiledChoice, CompiledRow

TEXT = """import torch


def doubled(x):
    return x * 2.0


def example_inputs():
    return (torch.rand(4096),)
"""


def test_what_does_not_compile_is_named_with_what_the_compiler_said() -> None:
    """Operators that compile are counted and not named."""
    fine = CompiledChoice(made="rows", kernels=2)
    rows = (
        CompiledRow(operator="a/one", choices=(fine, CompiledChoice(made="rows", why="too large"))),
        CompiledRow(operator="b", choices=(fine,)),
    )
    assert list(table(rows)) == [
        "a/one: 2 kernels, 0 KiB, 0 B spilled; too large",
        "2 operators, 3 choices: 4 kernels compile, 1 choices do not",
    ]


@pytest.mark.slow
def test_an_operator_is_compiled_in_a_process_of_its_own(tmp_path: Path) -> None:
    """Each of its choices has a kernel for the GPU; one that is not ready in time is given up."""
    file = tmp_path / "doubled.py"
    file.write_text(TEXT)
    row = compiled_apart("doubled", file, "h200", 1, 120.0)
    assert [(one.kernels, one.why) for one in row.choices] == [(1, "")]
    assert compiled_apart("doubled", file, "h200", 1, 0.01).why == "not ready after 0 s"
