"""Lists of all positions follow their size."""

from __future__ import annotations

from tools.codegen.ir.constant_tensors import Tables, table_text
from tools.codegen.ir.sizes import Fact

ROWS = Fact("x.shape[0]", (4, 2))


def test_all_positions_of_a_size_are_counted_at_any_size() -> None:
    """`x[range(rows), actions]` picks of each row, however many there are."""
    assert table_text(Tables(([0, 1, 2, 3], [0, 1])), [ROWS]) == "[*range(x.shape[0])]"


def test_other_lists_are_those_of_the_sizes_that_were_seen() -> None:
    """What comes at a size that no trace saw is not known."""
    assert table_text(Tables(([0, 2, 1, 3], [1, 0])), [ROWS]) == "{4: [0, 2, 1, 3], 2: [1, 0]}[x.shape[0]]"
