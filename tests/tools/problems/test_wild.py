"""The suite of operators that nobody prepared, data/suites/wild."""

from __future__ import annotations

import ast
import json
import random
from collections import Counter
from pathlib import Path

import pytest

from tools.problems import load_problem, open_problem, problem_notes, small_variants
from tools.problems.suite import SuiteItem, open_suite
from tools.problems.trial import call

FOLDER = Path(__file__).parents[3] / "data" / "suites" / "wild"
ITEMS = open_suite(FOLDER).items
FIRST = {item.name.split("/")[0]: item.name for item in reversed(ITEMS)}.values()
"""An operator of each family."""
SAMPLED = [pytest.param(item, id=item.name, marks=() if item.name in FIRST else pytest.mark.thorough) for item in ITEMS]
SMALL = 50_000
"""Elements of all tensors at small sizes."""
SHORT = ("bfloat16", "float16", "float8")
LATER = {"codebooks", "detection", "geometry", "physics", "recommendation", "rendering", "series"}
"""Families that came after the draw: all are developed on."""


def test_a_third_of_the_families_is_set_apart_by_a_draw() -> None:
    """Which families are held out is a draw over all names that anybody can repeat."""
    parts = json.loads((FOLDER / "parts.json").read_text())
    families = {*parts["development"], *parts["held_out"]}
    assert {item.file.parent.name for item in ITEMS} <= families
    assert parts["held_out"] == sorted(random.Random(26).sample(sorted(families - LATER), 6))
    assert set(parts["development"]) >= LATER


def test_half_of_it_has_short_floats() -> None:
    """Half of the operators have tensors in bfloat16, float16 or float8."""
    short = [item for item in ITEMS if any(word in item.file.read_text() for word in (*SHORT, ".half()"))]
    assert 2 * len(short) >= len(ITEMS)


def test_names_are_unique_without_their_family() -> None:
    """An operator's problem is named by its file, so that no two may share a name."""
    assert max(Counter(item.file.stem for item in ITEMS).values()) == 1


def test_each_says_what_it_is() -> None:
    """A docstring has what its operator does, where it occurs and what limits it."""
    said = {item.name: (ast.get_docstring(ast.parse(item.file.read_text())) or "").split("\n\n") for item in ITEMS}
    assert [name for name, parts in said.items() if len(parts) != 2 or "Occurs " not in parts[1] or "ound" not in parts[1]] == []


@pytest.mark.parametrize("item", SAMPLED)
def test_is_an_operator_that_can_be_judged(item: SuiteItem) -> None:
    """It loads, is the same function at each call, and gives finite results at small sizes of its own."""
    problem = load_problem(item.file)
    assert "SMALL_SIZES" in problem.source
    assert problem_notes(problem) == ()
    for variant in small_variants(problem):
        assert sum(spec.numel for spec in (*variant.abi.inputs, *variant.abi.parameters, *variant.abi.outputs)) <= SMALL
        opened = open_problem(variant)
        outputs = call(opened, opened.inputs(seed=3), seed=3)
        assert all(bool(output.isfinite().all()) for output in outputs if output.is_floating_point())
