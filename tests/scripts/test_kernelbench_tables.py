"""The tables of KernelBench's pages, written from the rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from scripts.kernelbench_tables import PROBLEMS, all_of, page_lines, problem, summary

FOLDER = Path(__file__).parents[2] / "docs" / "results" / "kernelbench"


def row(number: int, gain: float, status: str = "kernel", curve: tuple[float, ...] = ()) -> dict[str, Any]:
    """A problem of level 1 whose kernel is `gain` times as fast as eager and half as much against torch.compile."""
    found = {"problem": f"level1/{number}_Sum_of_rows", "number": number, "status": status, "candidate_us": 100.0 / gain, "floor_us": 10.0}
    found |= {"baselines_us": {"eager": 100.0, "compile": 50.0}, "speedups": {"eager": [gain], "compile": [gain / 2]}}
    return found | {"curve": [{"speedup": each} for each in curve], "spent": {"evaluations": 5, "gpu_s": 2.0}}


def test_the_pages_hold_every_line_of_their_rows() -> None:
    """What the pages and the file of problems say of each level and problem is what the rows beside them say."""
    lines, file = all_of(FOLDER)
    assert len(lines) > 10
    assert len(file.splitlines()) == 251
    assert [line for line in lines if line not in page_lines(FOLDER)] == []
    assert (FOLDER / PROBLEMS).read_text() == file


def test_what_is_kept_or_slower_counts_as_one() -> None:
    """A kept reference counts 1 on both sides, a kernel behind torch.compile 1 against it; shares are of the logarithms of gains."""
    rows = [row(1, 8.0, curve=(2.0, 4.0)), row(2, 1.0, "reference"), row(3, 2.0), row(4, 1.0)]
    assert summary("all", rows) == "| all | 4 | 3 | 1 | 2.00x, 1.41x | 50 %, 100 %, 100 % | 5.0, 2.0 |"


def judged(gain: float) -> dict[str, Any]:
    """The evaluator's row of a kernel of the same problem, beside baselines of its own."""
    found = {"us": 100.0 / gain, "baselines_us": {"eager": 100.0, "compile": 60.0}}
    return found | {"speedups": {"eager": [gain], "compile": [gain * 0.6]}}


def test_a_problem_says_what_it_ended_with() -> None:
    """A kernel that passed has the evaluator's times, and what stands out; one that loses to eager leaves the reference."""
    name = "level1/3_Sum_of_rows"
    assert problem(row(3, 2.0), {name: judged(8.0)}, {}) == [name, "100", "60", "12", "4.80", "", ""]
    assert problem(row(3, 2.0), {name: judged(8.0)}, {name: judged(20.0)}, {name})[3:] == ["12", "4.80", "5", "marked"]
    carried = row(14, 2.0) | {"problem": "level2/14_Sum_of_rows"}
    assert problem(carried, {carried["problem"]: judged(8.0)}, {})[3:] == ["12", "4.80", "", "reduction pushed down"]
    assert problem(row(3, 2.0), {name: judged(0.9)}, {}) == [name, "100", "60", "", "", "", "reference kept"]
    assert problem(row(3, 1.0, "reference"), {}, {}) == [name, "100", "50", "", "", "", "reference kept"]
    assert problem(row(3, 1.0, "failed") | {"baselines_us": {}}, {}, {}) == [name, "", "", "", "", "", "cannot be judged"]
