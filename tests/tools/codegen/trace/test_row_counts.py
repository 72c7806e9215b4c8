"""What a trace answers where a reference asks how many rows were picked."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any

import pytest

from tools.codegen.trace.dispatch.row_counts import MANY, MOST_REPEATS, Answers, RowCountError


def test_no_two_asks_of_a_step_hide_that_it_asks_for_more() -> None:
    """Picks that a step asks of in turn are said to have one row and many, each of them."""
    answers = Answers()
    said = [answers.number(pick) for pick in range(12)]
    assert {*said[::2]} == {*said[1::2]} == {1, MANY}


def test_a_loop_over_rows_is_refused() -> None:
    """A place of a reference that calls PyTorch for each of many rows ends the trace."""
    answers = Answers()
    answers.number("pick")
    with pytest.raises(RowCountError, match="as often as"):
        all(answers.heard(sys._getframe()) is None for _ in range(MANY))


def test_what_pytorch_calls_is_no_loop_of_the_reference() -> None:
    """Passes over a whole graph of many experts call as often as they like."""
    answers, caller = Answers(), sys._getframe()
    answers.number("pick")
    own: Any = SimpleNamespace(f_globals={"__name__": "torch._export.passes"}, f_code=caller.f_code, f_lasti=0)
    for _ in range(MOST_REPEATS + 1):
        answers.heard(own)
