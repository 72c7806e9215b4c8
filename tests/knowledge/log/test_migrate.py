"""Knowledge of schema 1, as the first release wrote it, in this one."""

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from knowledge.log.event_log import SCHEMA_VERSION
from knowledge.records import SCHEMA, Situation, StrategyState
from knowledge.store import KnowledgeBase
from tests.knowledge.conftest import MakeBase, MakeOutcome

DATA = Path(__file__).parents[1] / "data"
KNOWN = {"81b21165c56937c8": "observed", "0b15108d0c1a22f0": "observed", "5631b704952bc429": "retired"}
"""Ids and states as the first release listed them."""


@pytest.fixture
def old(tmp_path: Path, make_base: MakeBase) -> Callable[[], KnowledgeBase]:
    """A store whose log the first release wrote; a dump of it is in data/."""
    (tmp_path / "store").mkdir()
    with closing(sqlite3.connect(tmp_path / "store" / "log.sqlite3")) as connection:
        connection.executescript((DATA / "log-v1.sql").read_text())
    return make_base


def version(path: Path) -> int:
    """Version of a log's tables."""
    with closing(sqlite3.connect(path)) as connection:
        return int(connection.execute("PRAGMA user_version").fetchone()[0])


def test_an_old_log_opens_with_everything_in_it(old: Callable[[], KnowledgeBase]) -> None:
    """Ids, states, trials and lessons are what they were, in the present schema."""
    strategies = old().all()
    assert {s.id: s.state.value for s in strategies} == KNOWN
    assert {s.schema_version for s in strategies} == {SCHEMA}
    assert [len(s.trials) for s in strategies] == [1, 2, 1]
    assert strategies[1].lesson == "One pass over the row wins."


def test_the_old_log_is_kept_beside_the_new_one(old: Callable[[], KnowledgeBase]) -> None:
    """Migration changes the tables once, and leaves a copy that the first release still reads."""
    base = old()
    base.all()
    base.close()
    log = base.folder / "log.sqlite3"
    assert (version(log), version(log.with_name("log.sqlite3.v1"))) == (SCHEMA_VERSION, 1)
    assert len(old().all()) == len(KNOWN)


async def test_a_migrated_log_goes_on(old: Callable[[], KnowledgeBase], make_outcome: MakeOutcome, situation: Situation) -> None:
    """What is known is found again, credited and recalled beside what is new."""
    base = old()
    changed = await base.learn(make_outcome(run="run9", cited=("81b21165c56937c8",)))
    assert "81b21165c56937c8" in changed
    assert len(base.get("81b21165c56937c8").trials) == 2
    assert "0b15108d0c1a22f0" in {found.strategy.id for found in await base.recall(situation)}


def test_an_old_process_may_append_to_a_migrated_log(old: Callable[[], KnowledgeBase]) -> None:
    """An event written by the first release's own statement after migration is read as of version 1."""
    base = old()
    first = base.all()[0]
    body = '{"strategy": {"schema_version": 1, "title": "T", "situation": {"families": []}, "kind": "launch", "lesson": "L", "source": "S"}'
    with closing(sqlite3.connect(base.folder / "log.sqlite3")) as connection:
        row = ("2026-01-01T00:00:00+00:00", "strategy", "old-writer", "feed", body + ', "origin": "learnt"}')
        connection.execute("INSERT OR IGNORE INTO events (at, kind, key, subject, body) VALUES (?, ?, ?, ?, ?)", row)
        connection.commit()
    assert [s.title for s in base.all()][-1] == "T"
    assert base.all()[0] == first


def test_an_old_export_is_imported(make_base: MakeBase) -> None:
    """An export of schema 1 brings its strategies, trials and retirements."""
    base = make_base()
    report = base.import_(DATA / "export-v1.jsonl")
    assert (report.added, report.credited) == (3, 4)
    assert {s.id: s.state.value for s in base.all()} == KNOWN
    assert base.get("5631b704952bc429").state is StrategyState.RETIRED
