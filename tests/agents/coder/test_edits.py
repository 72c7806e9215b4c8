"""Edits: a source changed text by text."""

from __future__ import annotations

from agents.coder.edits import edited, read_edits

SOURCE = "import torch\n\nx = 1\ny = 2  \nx = 1\n"


def test_an_edit_replaces_lines_that_are_there_once() -> None:
    """Lines that are there once are replaced, spaces at their ends aside; several edits are made one after the other."""
    first = "<<<<<<< SEARCH\ny = 2\n=======\ny = 3\nz = 4\n>>>>>>> REPLACE\n"
    edits = read_edits(f"Idea: three.\n{first}and\n<<<<<<< SEARCH\nz = 4\n=======\n>>>>>>> REPLACE\n")
    assert edits == (("y = 2\n", "y = 3\nz = 4\n"), ("z = 4\n", ""))
    assert edited(SOURCE, edits) == ("import torch\n\nx = 1\ny = 3\nx = 1\n", "")


def test_an_edit_that_fits_nowhere_or_twice_is_named() -> None:
    """Text that is not there, is there more often or is empty is refused, with the edit's number and its first line."""
    assert "edit 1 searches is not in the source: `q = 0`" in edited(SOURCE, (("q = 0\n", ""),))[1]
    assert "edit 2 searches is there 2 times: `x = 1`" in edited(SOURCE, (("y = 2\n", "y = 1\n"), ("x = 1\n", "")))[1]
    assert "is empty" in edited(SOURCE, (("", "x\n"),))[1]
