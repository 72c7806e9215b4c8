"""Questions without some of their parts, and what their answers came to."""

from __future__ import annotations

from pathlib import Path

from benchmarks.kept_rows import Row
from benchmarks.prompts.judged import answered, report
from benchmarks.prompts.without import without

QUESTION = """# system

You write kernels.

# user

# Problem row_mean

# Idioms that may fit

<<<DATA 12 idiom
# a comment of the idiom
x = 1
DATA 12>>>

# Task

Write it.
# How it is asked

{}
"""


def test_a_part_is_left_out_up_to_the_next_heading() -> None:
    """Comments in what is shown as data begin no part, and all else stands as it was."""
    less = without(QUESTION, ["Idioms"])
    assert "comment" not in less
    assert "x = 1" not in less
    assert less == QUESTION.replace(QUESTION[QUESTION.index("# Idioms") : QUESTION.index("# Task")], "")


def test_only_answered_questions_are_judged(tmp_path: Path) -> None:
    """A question without an answer waits, and what a request was sent with is no part of what was read."""
    (tmp_path / "0001.prompt.md").write_text(QUESTION)
    (tmp_path / "0002.prompt.md").write_text(QUESTION)
    (tmp_path / "0002.answer.md").write_text("none")
    (found,) = answered("whole", tmp_path)
    assert (found.number, found.operator, found.answer) == ("0002", "row_mean", "none")
    assert found.question.endswith("Write it.\n")


def test_arms_are_held_against_one_over_what_both_have_right() -> None:
    """A wrong kernel counts among the questions and not in the gains."""
    rows: list[Row] = [
        {"arm": "less", "number": "1", "verdict": "PASS", "gain": 2.0, "input": 60},
        {"arm": "less", "number": "2", "verdict": "WRONG", "gain": None, "input": 60},
        {"arm": "whole", "number": "1", "verdict": "PASS", "gain": 4.0, "input": 100},
        {"arm": "whole", "number": "2", "verdict": "PASS", "gain": 2.0, "input": 100},
    ]
    assert report(rows, "whole")[-1] == "| less | 2 | 1 | 60 | 2.00x | 0.50x (1) |"
