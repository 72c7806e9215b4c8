"""Small sizes of traced calls: apart, tied as the captured ones are, or none."""

from __future__ import annotations

from kernelwright.models.small_sizes import with_small_sizes

HEAD = "size0 = 4\nsize1 = 96\nsize2 = 96\n"
SMALL = "\nSMALL_SIZES = [{'size0': 7, 'size1': 5, 'size2': 3}, {'size0': 1, 'size1': 1, 'size2': 1}]\n"
SHAPES = "\nWORKLOADS = {'one': {'size0': 4, 'size1': 96, 'size2': 96}, 'two': {'size0': 4, 'size1': 8, 'size2': 8}}\n"
APART = "\nWORKLOADS = {'one': {'size0': 4, 'size1': 96, 'size2': 96}, 'two': {'size0': 4, 'size1': 8, 'size2': 9}}\n"


def test_sizes_that_are_equal_in_every_call_are_tied_next() -> None:
    """The second text has one value for keys and values, which no call had apart; the last has none."""
    apart, tied, none = with_small_sizes(f"{HEAD}{SHAPES}{SMALL}")
    assert apart == f"{HEAD}{SHAPES}{SMALL}"
    assert "{'size0': 7, 'size1': 5, 'size2': 5}" in tied
    assert "SMALL_SIZES" not in none


def test_sizes_of_one_shape_are_read_off_the_constants() -> None:
    """A call at one shape has its sizes in the file's constants."""
    assert "'size1': 5, 'size2': 5" in list(with_small_sizes(f"{HEAD}{SMALL}"))[1]


def test_sizes_that_differ_in_one_call_are_not_tied() -> None:
    """One call with other sizes shows that they do not hang together."""
    assert len(list(with_small_sizes(f"{HEAD}{APART}{SMALL}"))) == 2


def test_none_are_chosen_where_that_is_not_wanted() -> None:
    """What holds too many weights for an interpreter has no small sizes of its own."""
    assert list(with_small_sizes(f"{HEAD}{SMALL}", chosen=False)) == [f"{HEAD}\n"]


def test_steps_of_a_loop_stay_apart_at_several_shapes() -> None:
    """No shape tells their number, which is a constant of the file."""
    small = "\nSMALL_SIZES = [{'size0': 7, 'size1': 5, 'size2': 3, 'steps0': 5}]\n"
    assert "'size2': 5, 'steps0': 5" in list(with_small_sizes(f"{HEAD}steps0 = 64\n{SHAPES}{small}"))[1]
