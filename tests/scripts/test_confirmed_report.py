"""What the whole evaluator said of first choices, summed up."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from benchmarks.kept_rows import KeptRows
from scripts.confirmed_report import FIRST, report


def row(number: int, verdict: str, gain: float = 1.0, **more: Any) -> dict[str, Any]:
    """A judged kernel of level 1 that is `gain` times as fast as eager and half as much against torch.compile."""
    times = {"us": 100.0 / gain, "speedups": {"eager": [gain], "compile": [gain / 2]}} if verdict == "PASS" else {}
    found = {"problem": f"level1/{number}_a", "kernel": FIRST, "verdict": verdict, "bench_us": 25.0, "expected_us": 50.0 / gain}
    return found | {"bench": {"eager": 4.0, "compile": 4.0}} | times | more


def test_what_does_not_pass_or_win_counts_as_the_reference() -> None:
    """The last verdict on a first choice counts; a slow one, a wrong one and one of a search leave the reference in the level's means."""
    judged = [row(1, "WRONG"), row(1, "PASS", 4.0), row(2, "PASS", 0.5), row(3, "PASS", 8.0), row(3, "WRONG"), row(4, "INFRASTRUCTURE")]
    searched = row(5, "PASS", 16.0, kernel="delivered by the lab")
    del searched["expected_us"]
    text = report([*judged, searched], {1: [{"problem": f"level1/{number}_a"} for number in range(1, 6)]})
    assert "| 1 | 3 | 2 | 1.41x | 4.00x | 0.71x | 4.00x | 1.32x, 1.15x | 1, 1 |" in text
    assert "level 1: 3 kernels, Spearman 1.00, modelled over measured 0.50" in text
    assert "4.500 in the median of 2" in text


def test_the_fastest_kernel_that_passed_counts_whoever_chose_it() -> None:
    """Of a problem's kernels that passed the fastest counts, a search's too; one that is wrong or slower than eager does not."""
    judged = [row(1, "PASS", 4.0), row(1, "PASS", 2.0), row(2, "PASS", 16.0, kernel="delivered by the lab"), row(3, "PASS", 0.5)]
    text = report([*judged, row(4, "WRONG")], {1: [{"problem": f"level1/{number}_a"} for number in range(1, 5)]})
    assert "| 1 | 3 | 2.83x, 2.00x | 2, 2 |" in text


def test_other_flags_have_a_mean_of_their_own() -> None:
    """Kernels of 25 and 50 µs beside 100 and 50 µs under exact's flags gain 4 and 1; a problem without those times is left out."""
    times = {"exact": {"eager": 400.0, "compile": 100.0}}, {"exact": {"eager": 50.0}}
    judged = [row(place, "PASS", 4.0 / place, other_baselines_us=one) for place, one in enumerate(times, 1)]
    text = report([*judged, row(3, "PASS", 2.0)], {1: [{"problem": f"level1/{number}_a"} for number in range(1, 4)]})
    assert "Flags of exact, the reference by itself: 2.00x over the fastest of them, 2 problems." in text


def test_the_page_has_the_means_of_the_rows() -> None:
    """KernelBench's first table has the means of the fastest kernels and of first choices; its page of verdicts, those beside the lab."""
    folder = Path(__file__).parents[2] / "docs" / "results" / "kernelbench"
    page, verdicts = (path.read_text() for path in (folder.with_suffix(".md"), folder / "evaluator.md"))
    levels = {number: KeptRows(folder / f"level{number}.jsonl").rows for number in (1, 2, 3)}
    lines = [line.strip("| ").split(" | ") for line in report(KeptRows(folder / "confirmed.jsonl").rows, levels).splitlines()]
    first, best = ({cells[0]: cells for cells in lines if len(cells) == length and cells[0].isdigit()} for length in (9, 4))
    assert list(first) == list(best) == ["1", "2", "3"]
    for number, (_, kernels, means, counts) in best.items():
        passed = f"| {kernels} | {means.replace(', ', ' | ')} | {counts.split(', ')[1]} |"
        alone = f"{first[number][7]}, {first[number][8].split(', ')[1]} |"
        assert [line for line in page.splitlines() if line.startswith(f"| {number},") and passed in line and line.endswith(alone)]
        assert f"| {' | '.join(first[number][:7])} |" in verdicts
