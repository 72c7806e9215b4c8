"""The corpus of honest kernels: what is judged again, and what an interrupted run leaves."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from benchmarks.evaluator.honest_corpus import key_of, latest, main, table, unknown
from tests.benchmarks.conftest import Called
from tests.benchmarks.interrupting import start
from tests.honest.corpus import Honest

KERNEL = Honest("softmax-0", "ours generated", "problem", "source")


def row(kernel: Honest, verdict: str = "PASS") -> dict[str, Any]:
    """A row as the benchmark keeps it."""
    known = {"name": kernel.name, "origin": kernel.origin, "verdict": verdict, "rule": "", "notes": []}
    return known | {"key": key_of(kernel, gpu=False)}


def test_what_has_a_row_is_not_judged_again() -> None:
    """The same kernel in the same place is known; with another text, or on a GPU, it is not."""
    changed = replace(KERNEL, source="another source")
    assert unknown([KERNEL, changed], [row(KERNEL)], gpu=False) == [changed]
    assert unknown([KERNEL], [row(KERNEL)], gpu=True) == [KERNEL]


def test_what_the_machine_failed_at_is_judged_again() -> None:
    """A failure of the machine says nothing about a kernel."""
    assert unknown([KERNEL], [row(KERNEL, "INFRASTRUCTURE")], gpu=False) == [KERNEL]


def test_the_table_has_the_last_row_of_each_kernel() -> None:
    """A kernel that was judged twice counts once, as it ended last."""
    text = table(latest([row(KERNEL, "INFRASTRUCTURE"), row(KERNEL)]))
    assert "| ours generated | 1 | 1 PASS |" in text


def test_a_part_without_its_folder_is_refused(called: Called) -> None:
    """`--only liger` says that it needs the library's folder before anything is judged."""
    found = called(main, "--only", "liger")
    assert found.returncode == 2
    assert "--liger DIR" in found.stderr


@pytest.mark.timeout(240)
@pytest.mark.thorough
@pytest.mark.slow
def test_an_interrupted_run_keeps_its_rows_and_the_same_command_goes_on(called: Called, tmp_path: Path) -> None:
    """At SIGINT the run ends soon, without a traceback and with its table; then only what is missing is judged."""
    file = tmp_path / "rows.jsonl"
    arguments = ("row_mean", "--only", "generated", "--each", "2", "--parallel", "1", "--out", str(file))
    line = [sys.executable, "-m", "benchmarks.evaluator.honest_corpus", *arguments]
    process = start(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None
    first = process.stdout.readline()
    process.send_signal(signal.SIGINT)
    out, complaints = process.communicate(timeout=60)
    assert first.startswith("1/2 row_mean-0: PASS")
    assert process.returncode == 130, complaints
    assert "| ours generated | 1 | 1 PASS |" in out
    assert "Traceback" not in complaints
    again = called(main, *arguments)
    assert again.stdout.startswith("1/1 row_mean-1: PASS")
    assert [json.loads(text)["name"] for text in file.read_text().splitlines()] == ["row_mean-0", "row_mean-1"]
