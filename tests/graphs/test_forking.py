"""A run that begins at a candidate of another, on the small landscape of tests/support/loop.py."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from graphs.optimize.execute import execute
from graphs.run import forking
from graphs.run.fork import FORK, fork_of
from graphs.run.settings import RunSettings
from graphs.search import METHODS
from graphs.search.protocol import SearchSettings
from tests.support.loop import small_services
from tools.errors import UserError
from tools.records import ROOT, Baselines, Budget, Candidate, Evaluation, Plan, Sample, Tier
from tools.tracing import RunStore


def _settings(evaluations: int, **fields: object) -> RunSettings:
    return RunSettings.model_validate(
        {"target": "h200", "memory": False, "devices": "interpreter", "budget": Budget(evaluations=evaluations), **fields}
    )


@pytest.fixture(scope="module")
def record(tmp_path_factory: pytest.TempPathFactory) -> RunStore:
    """A finished run, from which all tests fork."""
    services = small_services(tmp_path_factory.mktemp("home") / "runs" / "first", _settings(4))
    asyncio.run(execute(services, lambda event: None))
    return services.store


async def _forked(record: RunStore, home: Path, prefix: str = "", **fields: object) -> RunStore:
    """Fork and see it through."""
    store = forking.fork_run(record, forking.chosen_candidate(record, prefix), _settings(2, **fields), home)
    settings = RunSettings.model_validate_json(store.meta("settings"))
    await execute(small_services(store.folder, settings, store=store), lambda event: None)
    return store


def _everything(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file() and path.suffix not in (".db-wal", ".db-shm")}


async def test_a_fork_begins_at_the_candidate_and_judges_it_no_second_time(record: RunStore, tmp_path: Path) -> None:
    """Its first candidate is that one, with its evaluation, for which nothing is spent; all further plans build on it."""
    chosen = forking.chosen_candidate(record, "")
    store = await _forked(record, tmp_path)
    plans = list(store.all("plan", Plan).values())
    assert next(iter(store.all("candidate", Candidate))) == chosen.id
    assert plans[0].planner == FORK
    assert {plan.parent for plan in plans[1:]} >= {chosen.id}
    assert ROOT not in {plan.parent for plan in plans[1:]}
    assert store.spent().evaluations == len(store.all("evaluation", Evaluation)) - 1
    judged = (store.folder / "evaluations.log").read_text()
    assert next(iter(store.all("evaluation", Evaluation))) not in judged


async def test_the_run_it_was_forked_from_is_named_and_stays_as_it_was(record: RunStore, tmp_path: Path) -> None:
    """Provenance is in the fork's record and in the plan's words; of the old run nothing is changed."""
    before = _everything(record.folder / "candidates"), record.marks()
    store = await _forked(record, tmp_path)
    fork = fork_of(store)
    assert fork is not None
    assert (fork.run, fork.judged) == ("first", True)
    assert "of first" in next(iter(store.all("plan", Plan).values())).rationale
    assert (_everything(record.folder / "candidates"), record.marks()) == before


@pytest.mark.parametrize("search", METHODS)
async def test_every_search_method_goes_on_from_a_fork(record: RunStore, tmp_path: Path, search: str) -> None:
    """Whatever the method, the fork ends with at least what it began with."""
    store = await _forked(record, tmp_path, search=search, search_settings=SearchSettings(batch=1))
    plans = list(store.all("plan", Plan).values())
    assert len(plans) > 1
    assert ROOT not in {plan.parent for plan in plans[1:]}


async def test_a_fork_of_a_failed_candidate_begins_with_its_repair(record: RunStore, tmp_path: Path) -> None:
    """What was wrong is mended first; where nobody can, the fork says so and names the candidate."""
    wrong = {one.id: one for one in record.all("candidate", Candidate).values() if "WRONG" in one.source}
    mendable = next(name for name, one in wrong.items() if "block: 32" in one.source)
    store = await _forked(record, tmp_path, mendable)
    assert [one.repairs for one in store.all("candidate", Candidate).values()][:2] == [0, 1]
    hopeless = next(name for name, one in wrong.items() if "block: 16" in one.source)
    with pytest.raises(UserError, match=f"candidate {hopeless} of first, .*fork another candidate"):
        await _forked(record, tmp_path, hopeless)


async def test_where_times_would_be_of_another_kind_it_is_judged_anew(tmp_path: Path) -> None:
    """A fork that estimates takes along no measured time, of the candidate or of the reference."""
    services = small_services(tmp_path / "runs" / "measured", _settings(4))
    await execute(services, lambda event: None)
    sample = Sample(median_us=100.0, low_us=99.0, high_us=101.0, count=30)
    measured = Baselines(tier=Tier.SEALED, samples={"eager": sample}, device="h200")
    services.store.put("baselines", services.problem.id, measured)
    store = forking.fork_run(services.store, forking.chosen_candidate(services.store, ""), _settings(2), tmp_path)
    assert store.all("evaluation", Evaluation) == {}
    assert fork_of(store) is not None
    assert not store.meta("inherited")


async def test_a_fork_of_a_fork_knows_all_steps(record: RunStore, tmp_path: Path) -> None:
    """The way from the reference goes through both runs."""
    child = await _forked(record, tmp_path)
    grandchild = forking.fork_run(child, forking.chosen_candidate(child, fork_of(child).candidate), _settings(2), tmp_path)  # type: ignore[union-attr]
    assert fork_of(grandchild).steps == fork_of(child).steps  # type: ignore[union-attr]


def test_an_unknown_candidate_is_refused(record: RunStore) -> None:
    """The error names the command that lists candidates."""
    with pytest.raises(UserError, match="kernelwright trace first"):
        forking.chosen_candidate(record, "zzz")
