"""A bench as it runs: resumable at any moment, the same whether it runs whole or in shards, honest about what it cannot do."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from kernelwright.bench.files import BenchFolder
from kernelwright.bench.loading import Loaded, Loader
from kernelwright.bench.merging import gather
from kernelwright.bench.report import make_report
from kernelwright.bench.row import ResultRow, Status
from knowledge.store import KnowledgeBase
from knowledge.vectors.embedding import HashingEmbedder
from tests.kernelwright.bench.small_bench import TEXT, DrawnPool, HereLoader, small_bench, small_settings, write_suite
from tools.errors import MachineError, UserError
from tools.problems.suite import open_suite
from tools.profiling.ncu import Counters
from tools.records import Evaluation, EvaluationRequest, PrecisionPolicy, Verdict

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def suite(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of three operators."""
    return write_suite(tmp_path_factory.mktemp("bench") / "suite")


@pytest.fixture(scope="module")
def whole(suite: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a bench that ran through in one piece."""
    out = tmp_path_factory.mktemp("whole")
    assert asyncio.run(small_bench(suite, out).run())
    return out


def _facts(row: ResultRow) -> dict[str, Any]:
    """What does not depend on when and how fast this machine ran."""
    facts = row.model_dump(exclude={"seconds"})
    facts["spent"].pop("wall_s")
    return facts


def _differences(rows: Mapping[str, ResultRow], others: Mapping[str, ResultRow]) -> dict[str, object]:
    """What rows of two benches do not agree in, by row and field: a whole row would hide it."""
    if rows.keys() != others.keys():
        return {"rows": (sorted(rows), sorted(others))}
    pairs = {key: (_facts(row), _facts(others[key])) for key, row in rows.items()}
    return {f"{key} {name}": (one[name], two[name]) for key, (one, two) in pairs.items() for name in one if one[name] != two[name]}


def test_every_problem_gets_its_row_and_its_run(suite: Path, whole: Path) -> None:
    """Three runs of built-in agents; each can be traced afterwards."""
    rows = BenchFolder(whole).rows()
    assert sorted(rows) == [f"{name}|greedy/off/builtin|0" for name in ("rows", "scaled", "summed")]
    for row in rows.values():
        assert row.status in {Status.KERNEL, Status.REFERENCE}
        assert row.basis == "estimated"
        assert 1 <= len(row.curve) <= 2
        assert (whole / "home" / "runs" / row.run / "run.db").is_file()


@pytest.mark.slow
@pytest.mark.thorough
def test_a_killed_bench_goes_on_and_ends_as_an_undisturbed_one(suite: Path, whole: Path, tmp_path: Path) -> None:
    """Killed in the middle of an evaluation after its first row: nothing is done twice, and the rows come out the same."""
    words = [sys.executable, "-m", "tests.kernelwright.bench.small_bench", str(suite), str(tmp_path), "", "0.5"]
    process = subprocess.Popen(words, cwd=ROOT)
    results = tmp_path / "results-1of1.jsonl"
    deadline = time.monotonic() + 120
    while process.poll() is None and not results.is_file() and time.monotonic() < deadline:
        time.sleep(0.02)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    before = len(BenchFolder(tmp_path).rows())
    assert 0 < before < 3
    assert asyncio.run(small_bench(suite, tmp_path).run())
    assert _differences(BenchFolder(tmp_path).rows(), BenchFolder(whole).rows()) == {}


def test_a_bench_that_is_done_does_nothing_more(suite: Path, whole: Path) -> None:
    """Repeating the command leaves the rows as they are."""
    text = (whole / "results-1of1.jsonl").read_text()
    bench = small_bench(suite, whole)
    assert bench.left == ()
    assert asyncio.run(bench.run())
    assert (whole / "results-1of1.jsonl").read_text() == text


def test_shards_put_together_equal_the_whole(suite: Path, whole: Path, tmp_path: Path) -> None:
    """Two shards in folders of their own, merged, give the same rows and the same figures."""
    for part in ("1/2", "2/2"):
        assert asyncio.run(small_bench(suite, tmp_path / part[0], part).run())
    merged, undivided = gather([tmp_path / "1", tmp_path / "2"]), gather([whole])
    assert _differences(*({row.key: row for row in table.rows} for table in (merged, undivided))) == {}
    assert make_report(merged).sections[0].arms[0].groups[0].means == make_report(undivided).sections[0].arms[0].groups[0].means


def test_a_line_that_a_kill_cut_off_costs_that_row_alone(suite: Path, whole: Path, tmp_path: Path) -> None:
    """The torn row is read again from its run, which had ended, and written on a line of its own."""
    text = (whole / "results-1of1.jsonl").read_text()
    for path in ("settings.json", "header-1of1.json"):
        (tmp_path / path).write_text((whole / path).read_text())
    (tmp_path / "home").symlink_to(whole / "home")
    (tmp_path / "results-1of1.jsonl").write_text(text[:-200])
    assert asyncio.run(small_bench(suite, tmp_path).run())
    assert len(BenchFolder(tmp_path).rows()) == 3


def test_other_settings_are_refused(suite: Path, whole: Path) -> None:
    """A folder keeps the settings it was begun with, and the message names what differs."""
    with pytest.raises(UserError, match="seeds is 2 here and 1 there"):
        small_bench(suite, whole, settings=small_settings(suite, seeds=2))


def test_mixed_settings_are_not_merged_unasked(suite: Path, whole: Path, tmp_path: Path) -> None:
    """Rows of other settings are refused, or put together with a note and under a name of their own."""
    other = small_settings(suite).model_copy(update={"seeds": 2})
    place = small_bench(suite, tmp_path / "other", settings=other)
    (tmp_path / "other" / "results-1of1.jsonl").write_text((whole / "results-1of1.jsonl").read_text())
    assert len(place.jobs) == 6
    with pytest.raises(UserError, match="--mixed"):
        gather([whole, tmp_path / "other"])
    mixed = gather([whole, tmp_path / "other"], mixed=True)
    assert {row.arm for row in mixed.rows} == {"greedy/off/builtin", "greedy/off/builtin (other)"}
    assert "other settings" in mixed.notes[0]


def test_random_and_unreadable_files_are_rows_too(tmp_path: Path) -> None:
    """Live dropout cannot be judged, a broken file cannot be read; both are listed with their reason and end nothing."""
    folder = tmp_path / "suite"
    folder.mkdir()
    (folder / "dropped.py").write_text(TEXT.format(name="dropped", body="torch.nn.functional.dropout(x, 0.5)"))
    (folder / "broken.py").write_text("def broken(:\n")
    assert asyncio.run(small_bench(folder, tmp_path / "out", loader=Loader()).run())
    rows = {row.problem: row for row in BenchFolder(tmp_path / "out").rows().values()}
    assert (rows["dropped"].status, rows["broken"].status) == (Status.NOT_JUDGEABLE, Status.UNREADABLE)
    assert "not deterministic" in rows["dropped"].reason
    assert "syntax error" in rows["broken"].reason


class _HeldLoader(HereLoader):
    """Does not get to the end of one file before another problem's row is there."""

    def __init__(self) -> None:
        self.other = asyncio.Event()

    async def load(self, file: Path, policy: PrecisionPolicy) -> Loaded:
        """Read a file."""
        if file.stem == "rows":
            await self.other.wait()
        return await super().load(file, policy)


def test_a_slow_problem_keeps_no_other_waiting(suite: Path, tmp_path: Path) -> None:
    """One that is not read, traced and timed in a while gives its place to the next one, and has its own row in the end."""

    async def run() -> bool:
        loader = _HeldLoader()

        def listen(event: dict[str, Any]) -> None:
            if event["event"] == "row":
                loader.other.set()

        bench = small_bench(suite, tmp_path, "1/2", loader=loader, patience_s=0.2, listener=listen)
        assert [job.item.name for job in bench.jobs] == ["rows", "summed"]
        return await asyncio.wait_for(bench.run(), 120)

    assert asyncio.run(run())
    lines = (tmp_path / "results-1of2.jsonl").read_text().splitlines()
    assert [json.loads(line)["problem"] for line in lines] == ["summed", "rows"]


def test_a_failing_machine_is_tried_again(suite: Path, tmp_path: Path) -> None:
    """Its row says that it failed and nothing about the problem; the next call does it anew, and the new row counts."""
    failing = small_bench(suite, tmp_path, "1/3", pool=_BrokenPool())
    assert asyncio.run(failing.run())
    assert [row.status for row in BenchFolder(tmp_path, "1/3").rows().values()] == [Status.FAILED]
    again = small_bench(suite, tmp_path, "1/3")
    assert len(again.left) == 1
    assert asyncio.run(again.run())
    assert [row.status for row in gather([tmp_path]).rows] != [Status.FAILED]


@pytest.mark.parametrize(("side_by_side", "expected"), [(2, 4), (1, 3)])
def test_what_others_kept_from_being_judged_is_done_once_more(suite: Path, tmp_path: Path, side_by_side: int, expected: int) -> None:
    """A run that met an unsteady machine beside others has another row, from a time when it was alone; by itself it had its chance."""
    pool = _UnsteadyPool(tmp_path / "log")
    told: list[bool] = []

    def listen(event: dict[str, Any]) -> None:
        if event["event"] == "row":
            told.append(event["again"])
            pool.crowded = len(told) < 3

    bench = small_bench(suite, tmp_path / "out", pool=pool, in_flight=side_by_side, listener=listen)
    assert asyncio.run(bench.run())
    assert len((tmp_path / "out" / "results-1of1.jsonl").read_text().splitlines()) == expected
    assert told == [False] * 3 + [True] * (expected - 3)
    left = [row.problem for row in BenchFolder(tmp_path / "out").rows().values() if Verdict.INFRASTRUCTURE in row.verdicts]
    assert left == ["rows"] * (4 - expected)


def test_a_frozen_memory_stays_as_it_was_and_a_learning_one_grows(suite: Path, tmp_path: Path) -> None:
    """Each arm begins with a copy of its own of one knowledge base, which itself is never written to."""
    start = KnowledgeBase(tmp_path / "start", HashingEmbedder())
    seeded = start.stats()["events"]
    plain = small_settings(suite)
    run = plain.run.model_copy(update={"embedder": "hashing"})
    settings = plain.model_copy(update={"run": run, "memories": ("frozen", "learning"), "knowledge": str(start.folder)})
    bench = small_bench(suite, tmp_path / "out", "1/3", settings=settings)
    assert asyncio.run(bench.run())
    place = BenchFolder(tmp_path / "out", "1/3")
    frozen, learning = (KnowledgeBase(place.knowledge(arm.name, 0)).stats()["events"] for arm in settings.arms())
    assert frozen.get("outcome", 0) == 0
    assert frozen["recall"] > 0
    assert learning["outcome"] > 0
    assert start.stats()["events"] == seeded


def test_time_that_is_up_leaves_the_rest_for_later(suite: Path, tmp_path: Path) -> None:
    """A bench that may take no time ends unfinished, and what is left is all there."""
    bench = small_bench(suite, tmp_path, delay=5.0)
    assert not asyncio.run(bench.run(stop_after_s=0.2))
    assert len(small_bench(suite, tmp_path).left) == len(open_suite(suite).items)


class _UnsteadyPool(DrawnPool):
    """Cannot judge one problem while it is crowded."""

    crowded = True

    async def evaluate(self, request: EvaluationRequest) -> Evaluation:
        """Pass all others."""
        if self.crowded and request.problem.name == "rows":
            return Evaluation(candidate=request.candidate, verdict=Verdict.INFRASTRUCTURE, notes=["The machine is unsteady."])
        return await super().evaluate(request)


class _BrokenPool:
    """A machine that fails at everything."""

    name = "broken"

    async def evaluate(self, request: EvaluationRequest) -> Evaluation:
        """Fail."""
        raise MachineError("The device is gone.", "Put it back.")

    async def baselines(self, problem: object, target: object) -> Any:
        """Fail."""
        raise MachineError("The device is gone.", "Put it back.")

    async def counters(self, request: EvaluationRequest) -> Counters:
        """Count nothing."""
        return Counters(note="Nothing was counted.")

    async def close(self) -> None:
        """Nothing is open."""
