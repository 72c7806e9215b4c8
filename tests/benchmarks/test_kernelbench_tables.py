"""The tables of KernelBench's page, written from the rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from benchmarks.kept_rows import KeptRows
from benchmarks.kernelbench_tables import problem, summary, tables

RESULTS = Path(__file__).parents[2] / "docs" / "results"


def row(number: int, gain: float, status: str = "kernel", curve: tuple[float, ...] = ()) -> dict[str, Any]:
    """A problem of level 1 whose kernel is `gain` times as fast as eager and half as much against torch.compile."""
    found = {"problem": f"level1/{number}_Sum_of_rows", "number": number, "status": status, "candidate_us": 100.0 / gain, "floor_us": 10.0}
    found |= {"baselines_us": {"eager": 100.0, "compile": 50.0}, "speedups": {"eager": [gain], "compile": [gain / 2]}}
    return found | {"curve": [{"speedup": each} for each in curve], "spent": {"evaluations": 5, "gpu_s": 2.0}}


def test_the_page_holds_every_line_of_its_rows() -> None:
    """What the page of results says of each level and problem is what the rows beside it say."""
    rows = {number: KeptRows(RESULTS / "kernelbench" / f"level{number}.jsonl").rows for number in (1, 2, 3)}
    marked = {row["problem"] for row in KeptRows(RESULTS / "kernelbench" / "admitted.jsonl").rows if row["marks"]}
    page = set((RESULTS / "kernelbench.md").read_text().splitlines())
    assert marked
    assert [line for line in tables(rows, marked) if line not in page] == []


def test_what_is_kept_or_slower_counts_as_one() -> None:
    """A kept reference counts 1 on both sides, a kernel behind torch.compile 1 against it; shares are of the logarithms of gains."""
    rows = [row(1, 8.0, curve=(2.0, 4.0)), row(2, 1.0, "reference"), row(3, 2.0), row(4, 1.0)]
    assert summary("all", rows) == "| all | 4 | 3 | 1 | 2.00x | 1.41x | 3.00x, 1.75x | 50 %, 100 %, 100 % | 5.0, 2.0 |"


def test_a_problem_says_what_it_ended_with() -> None:
    """A kernel has its times and gains, a kept reference its baselines, and what cannot be judged nothing."""
    assert problem(row(1, 8.0, curve=(2.0,))) == "| 1 Sum_of_rows | 100 | 50 | 12 | 8.00x | 4.00x | 2.00x | 1.2 |"
    assert problem(row(2, 1.0, "reference")) == "| 2 Sum_of_rows | 100 | 50 | – | – | reference kept | – | – |"
    assert problem(row(3, 1.0, "failed") | {"baselines_us": {}}) == "| 3 Sum_of_rows | – | – | – | – | cannot be judged | – | – |"
