"""How a tile's values lie over lanes, and what a warp's access costs the L1."""

import pytest

from tools.codegen.templates.shared.sectors import Beside, clocks
from tools.codegen.templates.tile.lanes import COLS, ROWS, Lanes, Side, spread


def test_lanes_and_warps_fill_the_fastest_dimension_first() -> None:
    """Of 32 by 64 elements four warps have 64 along the fastest, and each thread 16 rows."""
    found = spread([(COLS, 64), (ROWS, 32)], 128, 1)
    assert found.held == {COLS: 1, ROWS: 16}
    assert found.lanes == {COLS: 32, ROWS: 1}


def test_what_is_made_of_sums_is_made_by_every_lane_of_the_sum() -> None:
    """32 columns with 16 walked elements each: one warp makes 16 columns a thread, not one."""
    column, walked = frozenset([COLS]), frozenset([COLS, 0])
    lanes = Lanes({COLS: 32, 0: 16}, [column, walked], [Side(column, COLS, 4, 4, is_stored=True)], 32)
    assert lanes.held(column) == 16
    assert Lanes({COLS: 32}, [column], [Side(column, COLS, 4, 4)], 32).held(column) == 1


def test_an_access_lies_as_memory_wants_it() -> None:
    """Rows that lie side by side are along the lanes, whatever the columns are."""
    both = frozenset([ROWS, COLS])
    lanes = Lanes({ROWS: 32, COLS: 32}, [both], [Side(both, ROWS, 4, 4)], 32)
    assert lanes.of_access(Side(both, ROWS, 4, 4)).lanes == {ROWS: 8, COLS: 4}


@pytest.mark.parametrize(("apart", "expected"), [(1, 1), (8, 8), (16, 16), (32, 32), (33, 8), (72, 8), (9, 2.25)])
def test_banks_and_lines_decide_what_a_load_costs(apart: int, expected: float) -> None:
    """As many clocks as lanes share a bank, or a fourth of the lines: measured on an H100 within 1.25 of one another."""
    assert clocks((Beside(32, 1, ((apart, 1 << 20),)),), 4, 1) == expected


def test_wide_loads_cost_their_bytes() -> None:
    """512 bytes side by side take four clocks."""
    assert clocks((Beside(32, 4, ((1, 1 << 20),)),), 4, 4) == 4


def test_an_access_that_lies_along_nothing_is_turned_where_the_others_lie_along_columns() -> None:
    """A sampled read among wide ones goes through shared memory; of a tile with columns alone it does not."""
    both, column = frozenset([ROWS, COLS]), frozenset([COLS])
    wide, sampled = Side(both, COLS, 4, 4), Side(both, None, 1, 4)
    lanes = Lanes({ROWS: 4, COLS: 512}, [both], [wide, wide, sampled], 128)
    assert (lanes.turns(wide), lanes.turns(sampled)) == (False, True)
    assert not Lanes({COLS: 512}, [column], [Side(column, COLS, 4, 4)], 128).turns(Side(column, None, 1, 4))


def test_what_is_made_of_tensors_that_meet_lies_as_the_last_of_them() -> None:
    """64 numbers meet 64 others in two warps: each thread holds all of the first. In four, which are more threads, they decide nothing."""
    one, other = frozenset([0]), frozenset([1])
    sides = [Side(one, 0, 1, 8), Side(other, 1, 1, 8)]
    lanes = Lanes({0: 64, 1: 64}, [one, other, one | other], sides, 64)
    assert lanes.of(one | other) == ({0: 64, 1: 1}, {0: 1, 1: 32})
    assert Lanes({0: 64, 1: 64}, [one, other, one | other], sides, 128).of(one | other).held == {1: 1, 0: 32}
