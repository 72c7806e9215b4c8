"""The sample operators in data/operators."""

import time
from pathlib import Path

import pytest
import torch

from tools.problems import load_problem, open_problem, problem_notes, small_variants
from tools.records import ITEM_BYTES, ProblemForm

FOLDER = Path(__file__).parents[3] / "data" / "operators"
FILES = sorted(FOLDER.glob("*.py"))


def test_both_forms_are_shown() -> None:
    """At least twelve operators, about half of them in each form."""
    forms = [load_problem(path).form for path in FILES]
    assert len(forms) >= 12
    assert min(forms.count(ProblemForm.FUNCTION), forms.count(ProblemForm.KERNELBENCH)) >= 6


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_operator_loads_and_varies(path: Path) -> None:
    """It loads fast without a GPU, its inputs are of a realistic size, and it has small variants to be checked on."""
    start = time.monotonic()
    problem = load_problem(path)
    assert time.monotonic() - start < 10
    largest = max(spec.numel * ITEM_BYTES[spec.dtype] for spec in problem.abi.inputs)
    assert 16e6 <= largest <= 256 * 2**20
    assert len(small_variants(problem)) >= 3
    assert problem_notes(problem) == ()
    assert problem.source.startswith('"""')


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_weights_and_inputs_are_not_trivial(path: Path) -> None:
    """No parameter or buffer is all one value, none could be left out; no argument is constant."""
    variant = small_variants(load_problem(path))[0]
    reference = open_problem(variant)
    for name, value in reference.parameters().items():
        if value.dim():
            assert float(value.std()) > 0.01, name
    for value in reference.inputs(seed=1):
        assert not isinstance(value, torch.Tensor) or value.float().std() > 0.1
