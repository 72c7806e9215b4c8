"""The table of first choices counts what is near eager, and what loses as 1."""

from __future__ import annotations

import contextlib
import time

import pytest
import torch

from benchmarks.wild import choices_worker
from benchmarks.wild.choice_row import ChoicesRow, TimedChoice, table
from benchmarks.wild.choices_worker import Held, not_ready, relative_difference


def row(name: str, *choices: tuple[float | None, float]) -> ChoicesRow:
    """An operator that eager takes 100 µs for and torch.compile 40, and choices by time and difference."""
    made = tuple(TimedChoice(made="rows", modelled_us=10, us=us, difference=difference) for us, difference in choices)
    return ChoicesRow(operator=name, eager_us=100.0, compile_us=40.0, choices=made)


def test_the_best_choice_that_is_near_eager_counts() -> None:
    """A wrong one is not counted, however fast it is; the first choice is slower where it is wrong."""
    lines = list(table([row("a/one", (4.0, 0.5), (20.0, 0.001))]))
    assert lines[0].startswith("a/one: 2.00x")
    assert lines[-1] == "1 operators: best choice 2.00x in geometric mean, what loses counted as 1; first choice slower at 1"


def test_what_loses_counts_as_one() -> None:
    """An operator without a faster choice stands in the mean as 1, one that could not be prepared is named and left out."""
    lines = list(table([row("a/slow", (80.0, 0.0)), row("a/fast", (10.0, 0.0)), ChoicesRow(operator="a/none", why="not ready after 3 s")]))
    assert "a/none: nothing; not ready after 3 s" in lines
    assert lines[-1].startswith("2 operators: best choice 2.00x")


def test_what_has_no_choice_keeps_the_reference() -> None:
    """No choice, or none that counts, is said in words and counts as 1; where nothing is chosen, nothing is slower."""
    lines = list(table([row("a/none"), row("a/wrong", (4.0, 0.5)), row("a/fast", (5.0, 0.0))]))
    assert [line.split(";")[0] for line in lines[:3]] == ["a/fast: 8.00x", "a/none: no choice", "a/wrong: no choice counts"]
    assert lines[-1] == "3 operators: best choice 2.00x in geometric mean, what loses counted as 1; first choice slower at 1"


def test_a_missing_torch_compile_is_named() -> None:
    """The row says why it is missing, and eager alone is the baseline."""
    line = next(table([row("a/loop", (20.0, 0.0)).model_copy(update={"compile_us": None, "missing": "not ready after 120 s"})]))
    assert line == "a/loop: 5.00x; eager 100, compile - (not ready after 120 s), choices 20(10)"


def test_a_compilation_over_its_time_is_given_up() -> None:
    """What takes longer is stopped, even where it catches every Exception, and what fails says how."""

    def endless() -> None:
        while True:
            with contextlib.suppress(Exception):
                time.sleep(0.01)

    assert not_ready(endless, 0.2) == "not ready after 0 s"
    assert not_ready(lambda: 1 / 0, 5.0) == "ZeroDivisionError: division by zero"
    assert not_ready(lambda: None, 5.0) == ""


def test_narrow_outputs_are_compared() -> None:
    """Outputs in eight bits are held against eager's like any other."""
    eager = torch.tensor([1.0, 2.0, float("nan")]).to(torch.float8_e4m3fn)
    assert relative_difference([eager], [eager]) == 0.0
    assert relative_difference([(eager.float() * 2).to(torch.float8_e4m3fn)], [eager]) == 1.0


def test_large_outputs_are_compared_piece_by_piece(monkeypatch: pytest.MonkeyPatch) -> None:
    """The pieces together give the difference of the whole, complex numbers among them."""
    eager, other = torch.randn(7, 5, dtype=torch.complex64), torch.randn(7, 5, dtype=torch.complex64)
    whole = relative_difference([other], [eager])

    monkeypatch.setattr(choices_worker, "PIECE", 8)

    assert relative_difference([other], [eager]) == pytest.approx(whole)
    assert whole == pytest.approx(float((other - eager).abs().norm() / eager.abs().norm()), rel=1e-5)


def test_places_that_eager_rounds_apart_are_held_against_float64() -> None:
    """Where rounding before an argmax has eager name another place, the one that float64 names is right, and no third."""
    eager, exact = torch.tensor([2, 1]), torch.tensor([0, 1])
    held = Held([eager], lambda: [exact])
    assert held.difference([exact]) == 0.0
    assert held.difference([torch.tensor([1, 0])]) > 0.05


def test_float64_is_asked_only_where_eager_is_far() -> None:
    """A result near eager needs no second run of the reference."""
    eager = torch.ones(3)
    assert Held([eager], lambda: pytest.fail("was asked")).difference([eager * 1.01]) == pytest.approx(0.01, rel=1e-3)
