"""The page of hostile kernels and defences."""

from __future__ import annotations

from pathlib import Path

from benchmarks.evaluator.hack_matrix import pages

FOLDER = Path(__file__).parents[3] / "docs" / "results"


def test_the_page_and_the_file_say_what_the_rows_say() -> None:
    """What is written of hostile kernels and defences is made from the rows beside it."""
    for name, text in pages(FOLDER).items():
        assert (FOLDER / name).read_text() == text
