"""What several elements of a tile share is made, read and written once."""

from __future__ import annotations

from tests.tools.codegen.templates.tile.test_tiles import written


def test_three_elements_of_a_turned_vector_are_made_together() -> None:
    """Each coordinate of both vectors is read once for all of a result's, and the length of one is taken once."""
    source = written("turned_by_units", "first")[1]
    assert (source.count("tl.load"), source.count("tl.sqrt"), source.count("tl.store")) == (7, 1, 3)


def test_the_least_of_few_is_written_out() -> None:
    """Extremes over three coordinates, and their places, are no dimension of the tile."""
    assert "BLOCK_K1" not in written("nearest_by_most", "first")[1]


def test_what_is_alike_along_a_dimension_is_stored_for_its_first_position() -> None:
    """A sine that seven rows share is written by one of them."""
    assert "== 0), " in written("made_for_several", "tile")[1] or "== 0))" in written("made_for_several", "tile")[1]


def test_what_is_alike_along_a_walk_is_stored_before_it() -> None:
    """Of the programs that walk a part of a dimension each, the first stores what is the same along it."""
    source = written("made_for_several", "walked")[1]
    assert source.index("if pid % chunks == 0:") < source.index("for at in range") < source.rindex("tl.store")
