"""What the release before words were renamed had learnt, in this one: a dump of a real log, without its seeds, and a real export."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from knowledge.log.event_log import EventKind, EventLog
from knowledge.records import Outcome
from knowledge.store import KnowledgeBase
from tests.knowledge.conftest import MakeBase

DATA = Path(__file__).parents[1] / "data"
MADE = {
    "8a8bcca4": "matmul chunked fp16x3 as_is prepacked",
    "f81b67b3": "matmul chunked fp16x3 as_is",
    "a839fdf8": "matmul chunked fp16x3 as_is prepacked",
    "223f477f": "pooling vec4",
    "7597ee9e": "pooling vec4",
    "4233cd2d": "pooling tile",
    "d434fb18": "pooling flat",
}
"""By the start of the id that the release of then listed: what a choice of the cost model made, in the words of now."""


@pytest.fixture
def old(tmp_path: Path, make_base: MakeBase) -> KnowledgeBase:
    """A store whose log that release wrote."""
    (tmp_path / "store").mkdir()
    with closing(sqlite3.connect(tmp_path / "store" / "log.sqlite3")) as connection:
        connection.executescript((DATA / "log-first-words.sql").read_text())
    return make_base()


def made(base: KnowledgeBase) -> dict[str, object]:
    """What strategies about choices of the cost model say that they made, by the start of the id."""
    return {one.id[:8]: one.parameters["made"] for one in base.all() if "made" in one.parameters}


def outcomes(base: KnowledgeBase) -> list[Outcome]:
    """What the log's plans led to."""
    log = EventLog(base.folder / "log.sqlite3")
    found = [Outcome.model_validate(event.body["outcome"]) for event in log.read(kinds=(EventKind.OUTCOME,))]
    log.close()
    return found


def test_strategies_have_their_ids_and_todays_words(old: KnowledgeBase) -> None:
    """Parameters are in the words of now, titles as they were written."""
    assert made(old) == MADE
    assert {one.region for one in old.all()} == {"", "matmul", "matmul+rows"}
    assert any("made=window quads" in one.title for one in old.all())


async def test_what_is_learnt_again_is_credited_to_what_was_known(old: KnowledgeBase) -> None:
    """The same actions in the same situations make no other strategies."""
    known = {one.id: len(one.trials) for one in old.all()}
    for outcome in outcomes(old):
        await old.learn(outcome.model_copy(update={"run": "another"}))
    now = {one.id: len(one.trials) for one in old.all()}
    assert now.keys() == known.keys()
    assert all(now[name] > known[name] for name in known)


async def test_strategies_are_recalled(old: KnowledgeBase) -> None:
    """In the situation that they were learnt in."""
    (first, *_) = (one for one in outcomes(old) if one.action.parameters.get("made") == "pooling vec4")
    found = await old.recall(first.situation)
    assert {"223f477f", "7597ee9e"} & {one.strategy.id[:8] for one in found}


def test_an_export_is_imported(make_base: MakeBase) -> None:
    """As that release wrote it, and again as this one writes it."""
    base, other = make_base("first"), make_base("second")
    assert base.import_(DATA / "export-first-words.jsonl").added == len(MADE)
    base.export(base.folder / "again.jsonl")
    assert other.import_(base.folder / "again.jsonl").added == len(MADE)
    assert made(base) == made(other) == MADE
