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


def test_a_part_of_one_line_is_enough_where_it_is_there_once() -> None:
    """One line's part is replaced in its place; one that is there twice, or several lines without their indentation, are not guessed."""
    source = "def f(x):\n    kernel[grid](x, BLOCK=64, num_warps=8)\n    return x\n"
    changed = "def f(x):\n    kernel[grid](x, BLOCK=64, num_warps=4)\n    return x\n"
    assert edited(source, (("num_warps=8)\n", "num_warps=4)\n"),)) == (changed, "")
    assert "is there 3 times: `x`" in edited(source, (("x\n", "y\n"),))[1]
    assert "is not in the source" in edited(source, (("return x\nreturn y\n", "return x\n"),))[1]
