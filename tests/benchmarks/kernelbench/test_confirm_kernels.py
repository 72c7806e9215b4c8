"""Delivered kernels judged once more: which are taken, what is kept of them, and what the table says."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks.kernelbench.confirm_kernels import delivered, main, table
from tests.benchmarks.conftest import Called
from tests.tools.evaluation.conftest import DOUBLE, KERNEL
from tools.errors import UserError


def bench(folder: Path, kernels: dict[str, str], us: float = 10.0) -> Path:
    """A bench's folder with one delivered kernel a problem, and one problem whose reference was kept."""
    rows: list[dict[str, Any]] = []
    for problem, source in kernels.items():
        result = folder / "home" / "runs" / problem.replace("/", "-") / "result"
        result.mkdir(parents=True)
        (result / "kernel.py").write_text(source)
        row = {"run": problem.replace("/", "-"), "problem": problem, "number": int(problem.split("/")[1].split("_")[0])}
        rows.append(row | {"status": "kernel", "candidate_us": us, "speedups": {"eager": [2.0, 1.9, 2.1], "compile": [1.5, 1.4, 1.6]}})
    rows.append({"run": "none", "problem": "level1/9_kept", "number": 9, "status": "reference"})
    (folder / "results-1of1.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return folder


def test_of_a_problem_in_two_folders_the_last_counts(tmp_path: Path) -> None:
    """Kernels come by number, all levels in turn; problems whose reference was kept have none."""
    old = bench(tmp_path / "old", {"level1/2_b": "old b", "level1/1_a": "a"})
    new = bench(tmp_path / "new", {"level2/1_c": "c", "level1/2_b": "new b"}, us=5.0)
    found = delivered([old, new])
    assert [(one.problem, one.source, one.us) for one in found] == [
        ("level1/1_a", "a", 10.0),
        ("level2/1_c", "c", 5.0),
        ("level1/2_b", "new b", 5.0),
    ]
    assert found[0].speedups == {"eager": 2.0, "compile": 1.5}


def test_a_folder_without_results_is_refused(tmp_path: Path) -> None:
    """What is no bench's folder is named, with a mend."""
    with pytest.raises(UserError, match="holds no results"):
        delivered([tmp_path])


def test_the_table_sets_both_verdicts_side_by_side() -> None:
    """Means are geometric and over the kernels that were timed; what did not pass is listed."""
    timed = {"verdict": "PASS", "notes": [], "us": 10.0, "bench_us": 9.0, "bench": {"eager": 4.0, "compile": 2.0}}
    rows = [
        timed | {"problem": "level1/1_a", "tier": "sealed", "speedups": {"eager": [2.0, 0, 0], "compile": [4.0, 0, 0]}},
        timed | {"problem": "level1/2_b", "tier": "in-process", "speedups": {"eager": [8.0, 0, 0], "compile": [1.0, 0, 0]}},
        {"problem": "level2/1_c", "verdict": "WRONG", "notes": ["off by one"], "bench": {"eager": 9.0}, "bench_us": 1.0},
    ]
    text = table(rows)
    assert "| level1 | 2 | 2 PASS | 1 | 4.00x | 4.00x | 1.41x | 2.00x |" in text
    assert "| level2 | 1 | 1 WRONG | 0 | – | – | – | – |" in text
    assert "* level2/1_c: WRONG  off by one" in text


@pytest.mark.slow
def test_a_wrong_kernel_is_found_and_what_has_a_row_is_not_judged_again(called: Called, tmp_path: Path) -> None:
    """The whole evaluator judges each delivered kernel of a shard that has no row under the policy yet, and the rows are kept."""
    suite, file = tmp_path / "suite" / "level1", tmp_path / "rows.jsonl"
    suite.mkdir(parents=True)
    sources = {"level1/1_known": KERNEL, "level1/2_other": "another shard's", "level1/3_wrong": KERNEL.replace("* 2", "* 3")}
    sources |= {"level1/4_other": "another shard's", "level1/5_right": KERNEL}
    for problem in sources:
        (suite.parent / f"{problem}.py").write_text(DOUBLE)
    folder = bench(tmp_path / "bench", sources)
    known = {"problem": "level1/1_known", "key": delivered([folder])[0].key, "verdict": "PASS", "policy": "default", "notes": []}
    file.write_text(json.dumps(known) + "\n")

    done = called(main, str(suite.parent), str(folder), "--out", str(file), "--shard", "1/2")
    assert done.returncode == 1, done.stderr
    rows = [json.loads(text) for text in file.read_text().splitlines()]
    verdicts = {row["problem"]: row["verdict"] for row in rows[1:]}
    assert verdicts == {"level1/3_wrong": "WRONG", "level1/5_right": "PASS"}
    assert "| level1 | 3 | 2 PASS, 1 WRONG | 0 | – | – | – | – |" in done.stdout
