"""The store of a run: a real SQLite file and a real folder."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tests.support.makers import passed, timing
from tools.errors import UserError
from tools.records import ROOT, Action, ActionKind, Candidate, Correctness, Estimate, Evaluation, OutputError, Verdict
from tools.tracing import RunStore


def _candidate(source: str = "x = 1\n", parent: str = ROOT) -> Candidate:
    return Candidate(problem="p", parent=parent, action=Action(kind=ActionKind.FUSION, region="r0"), source=source, coder="test")


def _evaluation(name: str, gpu_seconds: float = 0.0) -> Evaluation:
    return Evaluation(candidate=name, verdict=Verdict.WRONG, gpu_seconds=gpu_seconds)


@pytest.fixture
def store(tmp_path: Path) -> RunStore:
    """A new run's store."""
    return RunStore.create(tmp_path / "run", {"run": "run"})


def test_a_candidate_comes_back_as_it_was(store: RunStore) -> None:
    """A stored candidate is read back equal, its source from a file a person can open."""
    candidate = _candidate()
    store.put_candidate(candidate)
    assert store.candidate(candidate.id) == candidate
    assert (store.folder / "candidates" / f"{candidate.id}.py").read_text() == "x = 1\n"


def test_the_difference_from_the_parent_is_kept(store: RunStore) -> None:
    """The diff of a candidate shows what changed against its parent's source."""
    store.put_root("x = 0\n")
    child = _candidate()
    store.put_candidate(child)
    assert "-x = 0\n+x = 1\n" in store.diff(child.id)


def test_what_was_spent_is_added_up_from_the_records(store: RunStore) -> None:
    """Evaluations, GPU seconds, tokens and money come from what was stored, so a repeated write does not count twice."""
    for _ in range(2):
        store.put("evaluation", "key", _evaluation("a", gpu_seconds=2.0), subject="a")
        store.put_call("call", '{"usage": {"input_tokens": 10, "output_tokens": 5}, "cost_usd": 0.25}')
    spent = store.spent()
    assert (spent.evaluations, spent.gpu_s, spent.tokens, spent.money_usd) == (1, 2.0, 15, 0.25)


def test_records_are_found_by_what_they_are_about(store: RunStore) -> None:
    """`all` with a subject returns only the records written about it."""
    store.put("evaluation", "one", _evaluation("a"), subject="a")
    store.put("evaluation", "two", _evaluation("b"), subject="b")
    assert list(store.all("evaluation", Evaluation, subject="b")) == ["two"]


def test_a_weakened_evaluation_is_not_kept(store: RunStore) -> None:
    """An evaluation with a defence switched off can never be taken for a finished one."""
    weak = _evaluation("a").model_copy(update={"weakened": ("poison", "seccomp")})

    with pytest.raises(UserError, match="poison, seccomp"):
        store.put("evaluation", "key", weak)

    assert store.get("evaluation", "key", Evaluation) is None


def test_a_span_that_raises_keeps_its_error(store: RunStore) -> None:
    """A node that raised is recorded as ended, with its error; one that was cut short has no end."""
    with pytest.raises(RuntimeError), store.span("plan", "round 1", "{}"):
        raise RuntimeError("boom")
    span = store.spans()[0]
    assert span.error == "RuntimeError: boom"
    assert span.ended is not None


def test_a_damaged_file_is_named_with_its_mend(tmp_path: Path) -> None:
    """Opening a run whose database is garbage raises a UserError that names the file."""
    (tmp_path / "run.db").write_bytes(b"garbage" * 1000)
    with pytest.raises(UserError, match=r"run\.db is damaged"):
        RunStore(tmp_path)


def test_a_store_of_another_schema_is_refused(store: RunStore) -> None:
    """A run written by another version is refused, not guessed at."""
    store.set_meta("schema", "999")
    store.close()
    with pytest.raises(UserError, match="schema 999"):
        RunStore(store.folder)


def test_there_is_no_run_in_an_empty_folder(tmp_path: Path) -> None:
    """Opening a folder without a run says so."""
    with pytest.raises(UserError, match="no run"):
        RunStore(tmp_path)


def test_an_unwritable_place_is_refused(tmp_path: Path) -> None:
    """A run folder below a file cannot be made, and the error says where to put it instead."""
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match="--home"):
        RunStore.create(tmp_path / "file" / "run", {})


def test_a_speed_without_correctness_cannot_be_written_down() -> None:
    """The evaluation record refuses a PASS whose error is above its limit."""
    wrong = OutputError(
        output="output0",
        relative_l2=1.0,
        worst_row=1.0,
        reference_relative_l2=0.0,
        reference_worst_row=0.0,
        limit_relative_l2=1e-6,
        limit_worst_row=1e-6,
    )
    correctness = Correctness(outputs=(wrong,), calls=1, sizes=("as written",), executor="interpreter")
    with pytest.raises(ValueError, match="within its limits"):
        Evaluation(candidate="c", verdict=Verdict.PASS, correctness=correctness)


def test_costs_of_calls_are_added_up_in_files_of_earlier_versions_too(tmp_path: Path) -> None:
    """A file whose calls have no columns for them gets these when it is opened, and still takes what that version writes."""
    folder = tmp_path / "run"
    folder.mkdir()
    with closing(sqlite3.connect(folder / "run.db")) as file:
        file.execute("CREATE TABLE calls (key TEXT PRIMARY KEY, created REAL NOT NULL, json TEXT NOT NULL)")
        file.execute("INSERT INTO calls VALUES ('a', 1.0, ?)", ('{"usage": {"input_tokens": 3, "output_tokens": 4}, "cost_usd": 0.5}',))
        file.commit()
    with closing(RunStore(folder)):
        pass
    with closing(sqlite3.connect(folder / "run.db")) as file:
        file.execute("INSERT OR REPLACE INTO calls VALUES ('b', 2.0, 'no JSON')")
        file.commit()
    with closing(RunStore(folder)) as store:
        assert (store.spent().tokens, store.spent().money_usd) == (7, 0.5)
        assert store.outline.paid() == [(1.0, 0.5), (2.0, 0.0)]


def test_an_outline_has_the_figures_of_whole_evaluations(tmp_path: Path) -> None:
    """Verdict, tier, time and gain of timed, estimated and failed evaluations are what their records say, and only the new are read."""
    store = RunStore.create(tmp_path / "run", {})
    estimate = Estimate(target="h200", candidate_us=25.0, eager_us=100.0, floor_us=1.0, model="m")
    found = {"a": passed(timing=timing(50.0)), "b": passed(estimate=estimate), "c": Evaluation(candidate="x", verdict=Verdict.WRONG)}
    for name, one in found.items():
        store.put("evaluation", name, one, subject="x")
    read = {one.id: one for one in store.outline.judged()}
    for name, one in found.items():
        assert read[name][3:] == (one.verdict, one.tier, one.time_us, one.speedup)
    last = store.written("evaluation", "c")
    assert [one.id for one in store.outline.judged(last)] == ["c"]
    store.close()


def test_an_evaluation_of_an_earlier_versions_file_is_outlined(tmp_path: Path) -> None:
    """A file whose records have no columns for it gets them when it is opened."""
    RunStore.create(tmp_path / "run", {"run": "run"}).close()
    with closing(sqlite3.connect(tmp_path / "run" / "run.db")) as file, file:
        file.execute("DROP TABLE records")
        file.execute("CREATE TABLE records (kind TEXT, id TEXT, subject TEXT, created REAL, json TEXT, PRIMARY KEY (kind, id))")
        row = _evaluation("a", gpu_seconds=3.0).model_dump_json()
        file.execute("INSERT INTO records VALUES ('evaluation', 'a/1', 'a', 1.0, ?)", (row,))
    with closing(RunStore(tmp_path / "run")) as store:
        assert [(one.candidate, one.verdict) for one in store.outline.judged()] == [("a", "WRONG")]
        assert store.spent().gpu_s == 3.0
