"""The memory method's textual gradient: lessons rewritten between batches of trajectories, in whole runs."""

from __future__ import annotations

import json
from pathlib import Path

from graphs.optimize.execute import execute
from graphs.run.context import Services
from graphs.run.settings import RunSettings
from graphs.search.protocol import SearchSettings
from graphs.search.wishes import Reflected
from knowledge.lessons.changes import Change
from knowledge.log.event_log import EventKind
from knowledge.protocol import FrozenMemory, Memory, NoMemory
from knowledge.store import KnowledgeBase
from knowledge.vectors.embedding import open_embedder
from tests.graphs.search.asked_runs import calls_for, considered, run_interrupted
from tests.support.loop import small_services
from tests.support.scripted_rules import Rule, Scenario
from tests.support.scripted_server import ScriptedServer
from tools.records import Budget, Plan

OPTIONS = {"steps": "2", "reflect_every": "1", "rewrites": "2"}
WORDS = json.dumps({"lesson": "Take larger blocks.", "expected_gain": 1.4, "reason": "They gained."})


def _settings(**options: str) -> RunSettings:
    search = SearchSettings(seed=2, batch=1, options={**OPTIONS, **options})
    return RunSettings(target="h200", search="memory", budget=Budget(evaluations=14), search_settings=search, update_every=0)


def _memory(folder: Path) -> KnowledgeBase:
    return KnowledgeBase(folder / "knowledge", open_embedder("hashing"), seeds=None, update_every=0)


async def _run(folder: Path, memory: Memory, **options: str) -> Services:
    services = small_services(folder / "run", _settings(**options), memory)
    await execute(services, lambda event: None)
    return services


async def test_lessons_are_rewritten_while_the_run_goes_on(tmp_path: Path) -> None:
    """A pass rewrites what the run's trajectories gainsay, each change is in the log with its diff, and later recalls see it."""
    memory = _memory(tmp_path)
    services = await _run(tmp_path, memory)
    passes = services.store.all("reflection", Reflected)
    rewritten = [name for one in passes.values() for name in one.rewritten]
    assert rewritten
    changes: tuple[Change, ...] = memory.changes()
    assert {change.strategy for change in changes} == set(rewritten)
    assert all(change.diff and change.reason for change in changes)
    assert "Between batches of trajectories memory went over" in considered(services)
    seqs = [e.seq for e in memory._log.read(kinds=(EventKind.REFLECT, EventKind.OUTCOME))]
    first = memory._log.read(kinds=(EventKind.REFLECT,))[0]
    assert first.seq < seqs[-1]


async def test_a_pass_is_bounded(tmp_path: Path) -> None:
    """No pass rewrites more lessons than the setting allows."""
    services = await _run(tmp_path, _memory(tmp_path), rewrites="1")
    assert max(len(one.rewritten) for one in services.store.all("reflection", Reflected).values()) == 1


async def test_the_same_run_rewrites_the_same(tmp_path: Path) -> None:
    """With built-in agents two runs of one seed on equal memories plan the same and end with the same lessons."""
    memories = [_memory(tmp_path / name) for name in "ab"]
    runs = [await _run(tmp_path / name, memory) for name, memory in zip("ab", memories, strict=True)]
    assert runs[0].store.all("plan", Plan) == runs[1].store.all("plan", Plan)
    assert [s.lesson for s in memories[0].all()] == [s.lesson for s in memories[1].all()]


async def test_without_passes_nothing_is_rewritten(tmp_path: Path) -> None:
    """With reflect_every=0 the lessons stay as they were learnt."""
    memory = _memory(tmp_path)
    services = await _run(tmp_path, memory, reflect_every="0")
    assert memory.changes() == ()
    assert not services.store.all("reflection", Reflected)


async def test_a_memory_that_may_not_change_stays_and_that_is_said_once(tmp_path: Path) -> None:
    """Off or frozen, nothing is rewritten, and the trace says so in one line."""
    known = _memory(tmp_path)
    for name, memory in (("off", NoMemory()), ("frozen", FrozenMemory(known))):
        services = await _run(tmp_path / name, memory)
        assert considered(services) == f"No lessons are rewritten between batches of trajectories: memory is {memory.name}."
        assert len(services.store.all("reflection", Reflected)) > 1
    assert known.changes() == ()


async def test_repeating_a_pass_changes_nothing(tmp_path: Path) -> None:
    """A pass that was made before gives what it did then, and writes no event."""
    memory = _memory(tmp_path)
    services = await _run(tmp_path, memory)
    before = memory._log.last()
    first = services.store.all("reflection", Reflected)["reflect 1"]
    update = await memory.reflect(services.run, 1)
    assert update is not None
    assert update.rewritten == first.rewritten
    assert memory._log.last() == before


async def test_a_model_words_the_lessons_and_is_paid_once(tmp_path: Path) -> None:
    """With a language model each rewritten lesson is one call of the run, and a resumed run makes none again."""
    rules = [Rule(match="# The strategy", answer=WORDS), Rule(role="planner", answer='{"plans": []}')]
    counts = []
    for name, times in (("a", 0), ("b", 4)):
        memory = _memory(tmp_path / name)
        with ScriptedServer(Scenario(rules=rules)) as server:
            services = await run_interrupted(tmp_path / name / "run", server, _settings(), times, memory)
        lessons = calls_for(services, "lesson ")
        assert lessons
        assert server.count("reviewer") == len(lessons) <= 2 * len(services.store.all("reflection", Reflected))
        assert any("Take larger blocks." in s.lesson for s in memory.all())
        counts.append(len(server.requests))
    assert counts[0] == counts[1]
