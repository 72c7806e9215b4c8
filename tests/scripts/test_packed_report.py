"""Tables of kernels that pack their weights: which kernel counts, what pays for packing, and the pages that hold them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from scripts.kernelbench_tables import page_lines
from scripts.packed_report import all_of, by_packing, folded_table, problems, tables

FOLDER = Path(__file__).parents[2] / "docs" / "results" / "kernelbench"


def row(us: float, packing_us: float = 0.0, name: str = "level2/7_Layer") -> dict[str, Any]:
    """One judged kernel of a problem whose eager takes 400 µs and torch.compile 200."""
    speedups = {"eager": (400 / us, 0.0, 0.0), "compile": (200 / us, 0.0, 0.0)}
    found = {
        "problem": name,
        "number": 7,
        "verdict": "PASS",
        "us": us,
        "speedups": speedups,
        "baselines_us": {"eager": 400, "compile": 200},
    }
    return found | ({"packing_us": packing_us} if packing_us else {})


def test_the_faster_of_both_counts_in_a_level() -> None:
    """Of two problems one gains by packing and one does not: the level has the better kernel of each, and each kind stands by itself."""
    plain = {name: row(100.0, name=name) for name in ("level2/7_Layer", "level2/8_Other")}
    packed = {"level2/7_Layer": row(50.0, 75.0), "level2/8_Other": row(200.0, 75.0, "level2/8_Other")}
    lines = tables({2: 2}, plain, packed)
    assert "| 2 | 2 | 4.00x, 2.00x | 4.00x, 2.00x | 4.00x, 2.00x | **5.66x, 2.83x**, 2 |" in lines


def test_calls_pay_for_packing_against_what_is_slower_alone() -> None:
    """75 µs are paid for by two calls that save 50 each; against something as fast nothing pays."""
    packed = {"level2/7_Layer": row(50.0, 75.0)}
    for plain_us, paid in ((100.0, "2,1"), (50.0, ",1")):
        lines = problems({"level2/7_Layer": row(plain_us)}, packed).splitlines()
        assert lines[-1] == f"level2/7_Layer,400,200,{plain_us:.0f},50,8.00,4.00,75,{paid}"


def test_folded_kernels_stand_beside_those_that_pack_nothing() -> None:
    """Of a problem in eval mode the fastest kernel that packs is the folded one, and only its gain counts in the level's mean."""
    rows = [row(100.0), row(50.0, 75.0), row(40.0, 75.0, "level3/8_Other"), row(60.0, 75.0)]
    assert folded_table(rows)[2:] == ["| 2 | 1 | 8.00x, 4.00x | 1 |", "| 3 | 1 | 10.00x, 5.00x | 1 |"]
    lines = problems(*by_packing(rows)).splitlines()
    assert lines[-2] == "level2/7_Layer,400,200,100,50,8.00,4.00,75,2,1"
    assert lines[-1].startswith("level3/8_Other,400,200,,40,")


def test_the_pages_and_files_have_what_the_rows_say() -> None:
    """Every line that the rows make stands on a page of KernelBench, and the files of problems are theirs."""
    lines, files = all_of(FOLDER)
    assert [line for line in lines if line not in page_lines(FOLDER)] == []
    assert {name: (FOLDER / name).read_text() for name in files} == files
