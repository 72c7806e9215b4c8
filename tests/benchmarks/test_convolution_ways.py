"""Schedules of convolutions: which are measured, and the page of what was."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.convolution_ways import Case, page
from tests.tools.codegen.compute_samples import module

CONVOLUTION = module("self.conv = torch.nn.Conv2d(8 * c, 64, 3)", "return self.conv(x)", "torch.randn(16, 64, 56, 56)")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A convolution that is worth generating."""
    path = tmp_path / "dense.py"
    path.write_text(CONVOLUTION)
    return path


def test_the_page_names_the_fastest_way_and_the_one_that_was_modelled_to_be(file: Path) -> None:
    """A problem's line has its fastest schedule, and how much longer the one takes that the cost model likes best."""
    ways = list(Case(file).ways())
    assert len({source for _, source, _ in ways}) == len(ways) > 3
    modelled = sorted(ways, key=lambda way: way[2])
    times = {str(modelled[0][0]): 20.0, str(modelled[1][0]): 10.0}
    rows = [{"problem": "dense", "way": way, "us": times.get(str(way), 40.0), "eager_us": 30.0} for way, _, _ in ways]
    line = page(rows, [file]).splitlines()[-1]
    assert f"| {len(ways)} | 10 | 30 | 3.00x |" in line
    assert "| 2.00x as long |" in line
