"""Operators that are made at random."""

from __future__ import annotations

from pathlib import Path

from benchmarks.wild.random_operators import operator_text
from tools.problems import load_problem


def test_a_seed_is_an_operator_that_can_be_loaded(tmp_path: Path) -> None:
    """The same seed writes the same file, another one another, and each is a problem whose sizes vary."""
    texts = [operator_text(seed) for seed in (3, 3, 4)]
    assert texts[0] == texts[1] != texts[2]
    for place, text in enumerate(texts[1:]):
        file = tmp_path / f"random_{place}.py"
        file.write_text(text)
        assert load_problem(file).work.operators
