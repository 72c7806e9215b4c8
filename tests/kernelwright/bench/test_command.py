"""`kernelwright bench` as a user types it."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from kernelwright.bench.running import Bench
from kernelwright.cli.app import main
from kernelwright.ui.benches import Benches
from tests.kernelwright.bench.rows import HEADER, kernel, settings
from tests.kernelwright.bench.small_bench import TEXT, write_suite


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home in which benches are noted."""
    monkeypatch.setenv("KERNELWRIGHT_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


def _run(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    monkeypatch.setattr(sys, "argv", ["kernelwright", "bench", *arguments])
    with pytest.raises(SystemExit) as ended:
        main()
    return int(ended.value.code or 0)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("nowhere",), "no folder"),
        (("SUITE", "--search", "psychic"), "greedy"),
        (("SUITE", "--memory", "foggy"), "frozen"),
        (("SUITE", "--agents", "wizards"), "planner=llm"),
        (("SUITE", "--agents", "llm"), "--model"),
        (("SUITE", "--agents", "solo:desk", "--model-set", "patience_s=3"), "timeout_s"),
        (("SUITE", "--levels", "1"), "no KernelBench folder"),
        (("SUITE", "--shard", "9/8"), "2/8"),
        (("SUITE", "--problems", "77"), "no problem"),
        (("SUITE", "--target", "abacus"), "h200"),
        (("SUITE", "--knowledge", "nowhere", "--memory", "learning"), "knowledge base"),
        (("report", "nowhere"), "settings of a bench"),
    ],
)
def test_wrong_input_gets_one_clear_line(
    arguments: tuple[str, ...], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Exit status 2, what is wrong and what to do, and no results folder with rows in it."""
    monkeypatch.chdir(tmp_path)
    suite = str(write_suite(tmp_path / "suite"))
    assert _run(monkeypatch, *(suite if word == "SUITE" else word for word in arguments)) == 2
    captured = capsys.readouterr()
    assert said.lower() in captured.err.lower()
    assert "Traceback" not in captured.err
    assert not list(tmp_path.glob("*/results-*"))


def test_help_has_examples(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """`bench --help` explains the default command and shows how to type it."""
    assert _run(monkeypatch, "--help") == 0
    out = capsys.readouterr().out
    assert "kernelwright bench data/operators" in out
    assert "--shard" in out


def test_report_prints_the_summary_as_one_object(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """`bench report DIR --json` needs nothing but the files of the folder."""
    (tmp_path / "settings.json").write_text(settings().model_dump_json())
    (tmp_path / "header-1of1.json").write_text(HEADER.model_dump_json())
    (tmp_path / "results-1of1.jsonl").write_text(kernel("level1/1_a", 25.0).model_dump_json() + "\n")
    assert _run(monkeypatch, "report", str(tmp_path), "--json") == 0
    printed: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert printed["sections"][0]["arms"][0]["problems"][0]["speedups"] == {"eager": 4.0, "compile": 2.0, "better": 2.0}
    assert (tmp_path / "report.md").is_file()


@pytest.mark.slow
def test_a_folder_in_a_report_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """With the real evaluator and no GPU: a kernel that was checked, an estimate that says so, a run that can be traced."""
    (tmp_path / "suite").mkdir()
    (tmp_path / "suite" / "scaled.py").write_text(TEXT.format(name="scaled", body="x * 2 + 1"))
    out = tmp_path / "out"
    assert _run(monkeypatch, str(tmp_path / "suite"), "--evaluations", "1", "--out", str(out), "--json") == 0
    section = json.loads(capsys.readouterr().out)["sections"][0]
    assert section["basis"] == "estimated"
    assert section["arms"][0]["groups"][0]["right"] == 1
    run = section["arms"][0]["problems"][0]["run"]
    monkeypatch.setattr(sys, "argv", ["kernelwright", "trace", run, "--home", str(out / "home"), "--json"])
    with pytest.raises(SystemExit):
        main()
    assert json.loads(capsys.readouterr().out)["candidates"][0]["verdict"] == "PASS"


def test_tuning_is_a_setting_of_every_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`--tune N` is kept with the settings of the folder, and is 8 where nothing is said, as for `optimize`."""
    suite = str(write_suite(tmp_path / "suite"))
    for name, said, kept in (("said", ("--tune", "3"), 3), ("silent", (), 8)):
        arguments = (suite, "--devices", "interpreter", "--stop-after", "0.001", "--out", str(tmp_path / name), *said)
        _run(monkeypatch, *arguments)
        assert json.loads((tmp_path / name / "settings.json").read_text())["run"]["tune"] == kept


def test_a_bench_that_is_stopped_says_once_how_to_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Ctrl-C ends with status 130 and the line that runs go on where they were, and none that says otherwise."""

    async def stopped(bench: Bench, seconds: float) -> bool:
        raise KeyboardInterrupt

    monkeypatch.setattr(Bench, "run", stopped)
    suite = str(write_suite(tmp_path / "suite"))
    assert _run(monkeypatch, suite, "--devices", "interpreter", "--out", str(tmp_path / "out")) == 130
    assert [line.split("s ", 1)[1] for line in capsys.readouterr().err.splitlines()[1:]] == [
        "stopped. Finished rows are kept, runs in flight go on where they were: repeat the command."
    ]


def test_a_bench_in_which_every_run_failed(
    tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Exit status 1, one line with a reason, no table of times that nobody took; a mended file is read again; the pages show the bench."""
    (tmp_path / "suite").mkdir()
    (tmp_path / "suite" / "broken.py").write_text("import torch\n")
    command = (str(tmp_path / "suite"), "--evaluations", "1", "--devices", "interpreter", "--out", str(tmp_path / "out"))
    for _ in range(2):
        assert _run(monkeypatch, *command) == 1
        said = capsys.readouterr()
        assert "The only run failed; broken: broken.py holds no problem" in said.err
        assert "done already" not in said.err
        assert "geometric means" not in said.out
    (line,) = Benches(home).all()
    assert (line["folder"], line["ended"]) == (str(tmp_path / "out"), {"unreadable": 1})
