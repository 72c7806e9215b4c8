"""The soak: what its rows add up to, and what an interrupted one leaves."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from benchmarks.evaluator.soak_candidates import plan
from benchmarks.evaluator.soak_report import page, summary
from tests.benchmarks.interrupting import start

SETTINGS = {"parallel": 2, "time_limit_s": 4.0, "machine": "a machine"}
BEFORE = {"processes": 3, "descriptors": 26, "scratch_folders": 1, "control_groups": 0, "resident_mib": 100}


def row(key: str, verdict: str = "PASS", *, expected: bool = True) -> dict[str, Any]:
    """One candidate's row."""
    return {"key": key, "kind": "honest", "verdict": verdict, "expected": expected, "notes": [], "log": ""}


def sitting(after: dict[str, int] | None) -> dict[str, Any]:
    """The row that ends a sitting; without a look at the end it was interrupted."""
    return {"sitting": {"seconds": 2.0, "judged": 1, "peak_supervisor_mib": 50}, "before": BEFORE, "after": after}


def test_a_fifth_misbehave_and_the_same_seed_plans_the_same() -> None:
    """A soak that goes on finds the candidates it had."""
    jobs = plan(100, 1, gpu=False)
    assert sum(job.kind not in ("honest", "wrong") for job in jobs) == 20
    assert jobs == plan(100, 1, gpu=False)
    assert len({job.source for job in jobs}) == 100


def test_all_judged_in_two_sittings_is_sound() -> None:
    """An interrupted sitting and one that ended make one soak."""
    found = summary([row("a"), sitting(None), row("b"), sitting(BEFORE)], {"a", "b"}, SETTINGS)
    assert found["sound"]
    assert found["verdicts_by_kind"] == {"honest": {"PASS": 2}}
    assert found["per_minute"] == 30.0


@pytest.mark.parametrize(
    "rows",
    [
        [row("a"), sitting(BEFORE)],
        [row("a"), row("b", "CRASHED", expected=False), sitting(BEFORE)],
        [row("a"), row("b"), sitting(BEFORE | {"processes": 4})],
        [row("a"), row("b"), sitting(None)],
    ],
    ids=["missing", "surprise", "left behind", "never looked at"],
)
def test_what_is_not_shown_is_not_sound(rows: list[dict[str, Any]]) -> None:
    """A candidate not judged, a surprise, a process left behind or no look at the end: none of them is well."""
    found = summary(rows, {"a", "b"}, SETTINGS)
    assert not found["sound"]
    assert "All well: no." in page(found)


def test_rows_of_another_plan_are_left_out() -> None:
    """A file may hold candidates that today's plan does not have."""
    assert summary([row("old"), row("a"), sitting(BEFORE)], {"a"}, SETTINGS)["verdicts_by_kind"] == {"honest": {"PASS": 1}}


@pytest.mark.timeout(240)
@pytest.mark.slow
@pytest.mark.thorough
def test_an_interrupted_soak_writes_its_page_and_leaves_no_traceback(tmp_path: Path) -> None:
    """At SIGINT, with workers in the middle of it, rows and page are there and the scratch folder is gone."""
    rows, markdown, scratch = tmp_path / "soak.jsonl", tmp_path / "soak.md", tmp_path / "scratch"
    scratch.mkdir()
    line = [
        sys.executable,
        "-m",
        "benchmarks.evaluator.soak",
        "--candidates",
        "40",
        "--parallel",
        "1",
        "--out",
        str(rows),
        "--markdown",
        str(markdown),
    ]
    process = start(line, stderr=subprocess.PIPE, env={**os.environ, "TMPDIR": str(scratch)})
    while process.poll() is None and not (rows.exists() and rows.read_text()):
        try:
            process.wait(0.1)
        except subprocess.TimeoutExpired:
            continue
    process.send_signal(signal.SIGINT)
    _, complaints = process.communicate(timeout=60)
    assert process.returncode == 130, complaints
    assert "Traceback" not in complaints
    assert json.loads(rows.read_text().splitlines()[-1])["after"] is None
    assert "Not yet judged: 40" in markdown.read_text()
    assert not list(scratch.glob("tmp*"))
