"""Comparisons that come out alike at every position are not made."""

from __future__ import annotations

from tests.tools.codegen.ir.test_narrow import VARYING, written

WIDE = "torch.randn(ROWS, COLS)"


def test_a_slice_that_stays_inside_of_its_padding_asks_nothing() -> None:
    """What a padded tensor holds between its borders is read as it is."""
    assert "tl.where" not in written("F.pad(x, (2, 2))[:, 2:-2] * 2", WIDE)


def test_a_slice_asks_for_the_border_that_it_reaches() -> None:
    """One that begins in the padding is compared with its begin, and not with its end."""
    text = written("F.pad(x, (2, 2))[:, 1:-3] * 2", WIDE)
    assert ">= 2" in text
    assert "shifted <" not in text


def test_a_comparison_that_depends_on_the_sizes_stays() -> None:
    """Positions below the sizes that were traced need not be below those of a later call."""
    assert "< 1000" in written(f"x * ({VARYING} < 1000)", WIDE)
