"""Rows that outlive an interrupted benchmark."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.kept_rows import KeptRows
from tools.errors import UserError


def test_a_row_is_in_the_file_at_once_and_read_again(tmp_path: Path) -> None:
    """What was added is there for the next run, without anything having been closed."""
    file = tmp_path / "rows.jsonl"
    kept = KeptRows(file)
    kept.add({"name": "one"})
    kept.add({"name": "two"})
    assert KeptRows(file).rows == [{"name": "one"}, {"name": "two"}]


def test_a_line_that_was_cut_off_is_dropped_and_the_next_is_whole(tmp_path: Path) -> None:
    """A run that was killed while it wrote leaves half a line, which the next run does not write on."""
    file = tmp_path / "rows.jsonl"
    file.write_text('{"name": "one"}\n{"name": "tw')
    kept = KeptRows(file)
    kept.add({"name": "three"})
    assert KeptRows(file).rows == [{"name": "one"}, {"name": "three"}]


@pytest.mark.parametrize("text", ["[\n {}\n]\n", "[1]\n", "not rows\n"])
def test_another_file_is_refused_and_left_alone(tmp_path: Path, text: str) -> None:
    """What is no file of rows is not overwritten."""
    file = tmp_path / "rows.json"
    file.write_text(text)
    with pytest.raises(UserError, match="does not hold rows"):
        KeptRows(file)
    assert file.read_text() == text


def test_without_a_file_rows_are_kept_in_memory() -> None:
    """A benchmark without --out has its rows all the same."""
    kept = KeptRows(None)
    kept.add({"name": "one"})
    assert kept.rows == [{"name": "one"}]
