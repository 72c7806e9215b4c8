"""The benchmark of a product's ways: what it would measure, and that one bad way costs no other its row."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import torch

from benchmarks.kernels.matmul_cases import CASES, WAYS, Case, kernel_source, open_case
from benchmarks.kernels.matmul_measurement import Ending, Measurement, judge
from benchmarks.kernels.matmul_rows import Job, Setting, table
from benchmarks.kernels.matmul_ways import Run, jobs, main
from tests.benchmarks.conftest import Called
from tools.problems import open_problem

SETTING = Setting(device="a GPU", driver="1", python="3", torch="2", triton="3")
GOOD = Measurement(ms=1.0, quartiles_ms=(0.9, 1.1), cublas_ms=2.5, error=1e-7, cublas_error=1e-6, of_limit=0.5, same_bits=True, build_s=1.0)
ENDS = {
    "fp16x3": f"open(out, 'w').write({Ending(measurement=GOOD).model_dump_json()!r})",
    "bf16x6": f"open(out, 'w').write({Ending(error='AcceleratorError: an illegal memory access').model_dump_json()!r})",
    "fp16x3 persistent": "import os; os.abort()",
    "fp16x3 stream_k": "import time; time.sleep(60)",
}
"""How a stand-in for the measuring process ends, by way; others end well."""
SIZE = CASES[0].name


def command(job: Job, out: Path) -> list[str]:
    """Start the stand-in."""
    return [sys.executable, "-c", f"out = {str(out)!r}\n{ENDS.get(job[1], ENDS['fp16x3'])}"]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_every_way_is_written(tmp_path: Path, case: Case) -> None:
    """The coder writes each way of each size, with a kernel and the programs and loads that its name says."""
    problem, graph = open_case(case, tmp_path)
    for way in case.ways:
        source = kernel_source(problem, graph, way)
        compile(source, way, "exec")
        assert "class ModelNew" in source
        assert ("_tiles.load(" in source) == (WAYS[way]["loads"] == "descriptors")
        assert ("multiprocessors(" in source) == (WAYS[way]["programs"] != "data_parallel")


def test_a_bad_way_costs_no_other_its_row(tmp_path: Path) -> None:
    """An illegal access, an abort and a hang are rows with their reasons; what comes after them is measured."""
    run = Run(tmp_path / "p.md", SETTING, command)
    ways = ["bf16x6", "fp16x3 persistent", "fp16x3 stream_k", "fp16x3"]
    assert not run.go([(SIZE, way) for way in ways], limit_s=2, seconds=0)
    assert [run.rows[SIZE, way].why_not for way in ways] == [
        "AcceleratorError: an illegal memory access",
        "exit status -6",
        "cut off after 2 s",
        "",
    ]
    assert "| fp16x3 | 1.000 [0.900, 1.100] | 2.500 | 2.50x |" in (tmp_path / "p.md").read_text()


def test_the_same_file_goes_on_with_what_is_missing(tmp_path: Path) -> None:
    """What was measured stays as it was, what was never tried comes next, and what failed last."""
    wanted = [(SIZE, way) for way in ("fp16x3", "bf16x6", "tf32x3 k_major")]
    Run(tmp_path / "p.jsonl", SETTING, command).go(wanted[:2], limit_s=20, seconds=0)
    tried: list[str] = []

    def counting(job: Job, out: Path) -> list[str]:
        tried.append(job[1])
        return command(("", "fp16x3"), out)

    assert Run(tmp_path / "p.jsonl", SETTING, counting).go(wanted, limit_s=20, seconds=0)
    assert tried == ["tf32x3 k_major", "bf16x6"]


def test_the_end_of_the_run_is_no_failure_of_a_way(tmp_path: Path) -> None:
    """What the whole run's time cuts off has no row, and nothing is begun with too little time left."""
    run = Run(tmp_path / "p.md", SETTING, command)
    assert not run.go([(SIZE, "fp16x3 stream_k"), (SIZE, "fp16x3")], limit_s=30, seconds=2, least_s=1)
    assert run.rows == {}


def test_rows_of_another_device_are_told_apart(tmp_path: Path) -> None:
    """A file that was measured with another Triton is seen as such."""
    Run(tmp_path / "p.md", SETTING, command).go([(SIZE, "fp16x3")], limit_s=20, seconds=0)
    newer = SETTING.model_copy(update={"triton": "4"})
    assert Run(tmp_path / "p.md", newer, command).strangers() == [SETTING]
    assert Run(tmp_path / "p.md", SETTING, command).strangers() == []


def test_errors_are_held_against_the_exact_policy(tmp_path: Path) -> None:
    """A float32 product is within the limits, one whose operands lost half of their digits is not, and a NaN is infinitely wrong."""
    case = Case("small", "matmul", 48, 64, 32, ())
    problem, _ = open_case(case, tmp_path)
    x, y = open_problem(problem).inputs(7)
    own, oracle = x @ y, x.double() @ y.double()
    assert judge(problem, own, own, oracle)[2] <= 1
    assert judge(problem, x.half().float() @ y.half().float(), own, oracle)[2] > 1
    assert judge(problem, own + torch.nan, own, oracle)[2] == float("inf")


def test_a_table_says_what_was_not_tried(tmp_path: Path) -> None:
    """Sizes without a row, and ways missing at a size, are named as not tried."""
    run = Run(tmp_path / "p.md", SETTING, command)
    run.go([(SIZE, "fp16x3")], limit_s=20, seconds=0)
    page = table(list(run.rows.values()))
    assert f"{len(CASES[0].ways) - 1} more of this size not tried." in page
    assert f"Sizes not tried: {CASES[1].name};" in page


def test_the_list_needs_no_gpu(called: Called, monkeypatch: pytest.MonkeyPatch) -> None:
    """`--list` names every row, or those that `--only` asks for."""
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    assert called(main, "--list").stdout.splitlines() == [" / ".join(job) for job in jobs([])]
    assert called(main, "--list", "--only", "stream_k").stdout.splitlines() == [" / ".join(job) for job in jobs(["stream_k"])]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "--out needs a file"),
        (["--out", "page.txt"], "--out needs a file"),
        (["--out", "page.md", "--limit", "0"], "--limit is above 0"),
        (["--out", "page.md"], "no NVIDIA GPU"),
        (["--list", "--only", "nothing like it"], "--only leaves nothing"),
    ],
)
def test_bad_arguments_are_refused(called: Called, monkeypatch: pytest.MonkeyPatch, arguments: list[str], said: str) -> None:
    """What cannot be run is refused with the reason, before anything is written."""
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    done = called(main, *arguments)
    assert done.returncode == 2
    assert said in done.stderr
