"""The loop as a whole, on the small landscape of tests/support/loop.py."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest

from graphs.optimize.execute import execute
from graphs.run.settings import RunSettings
from graphs.search.protocol import SearchSettings
from kernelwright.screen.facts import result_facts
from kernelwright.screen.trace_views import policy_lines
from tests.support.loop import small_services
from tools.guards import unguarded
from tools.records import ROOT, Budget, Candidate, Evaluation, Plan


def _settings(**fields: Any) -> RunSettings:
    return RunSettings(target="h200", memory=False, **fields)


async def test_the_best_candidate_is_found_and_delivered(tmp_path: Path) -> None:
    """With budget enough, the loop ends with the fastest block of the landscape, confirmed and written, guarded, to result/kernel.py."""
    services = small_services(tmp_path / "run", _settings(budget=Budget(evaluations=40)))
    delivery = await execute(services, lambda event: None)
    delivered = services.store.candidate(delivery.candidate)
    assert delivered is not None
    assert delivered.action.parameters == {"BLOCK": 128}
    written = (tmp_path / "run/result/kernel.py").read_text()
    assert unguarded(written) == delivered.source
    assert written == services.guarded(delivered) != delivered.source


async def test_the_reference_is_timed_under_other_flags_when_the_search_has_ended(tmp_path: Path) -> None:
    """Both sets of baselines are in the ending's facts and lines; the delivered kernel's speed-up is against the policy's own."""
    services = small_services(tmp_path / "run", _settings(budget=Budget(evaluations=4), repairs=0, baselines=("exact", "tf32")))
    await execute(services, lambda event: None)
    facts = result_facts(services.store)
    assert list(facts["other_baselines"]) == ["tf32"]
    own, other = policy_lines(facts)
    assert own == "policy:  exact; kernel and baselines with TF32 off"
    assert other.startswith("flags of tf32: eager ")
    assert "the reference by itself" in other
    assert "x as fast as the fastest of them" in other


async def test_a_repairable_draft_is_repaired(tmp_path: Path) -> None:
    """A draft that fails and can be mended ends as a passing candidate that counts its repairs."""
    services = small_services(tmp_path / "run", _settings(budget=Budget(evaluations=40)))
    await execute(services, lambda event: None)
    mended = [c for c in services.store.all("candidate", Candidate).values() if c.repairs]
    assert mended
    evaluation = services.evaluation(mended[0].id)
    assert evaluation is not None
    assert evaluation.verdict == "PASS"


async def test_no_plan_is_tried_twice(tmp_path: Path) -> None:
    """Every evaluation of a run is of another job: nothing is evaluated again."""
    services = small_services(tmp_path / "run", _settings(budget=Budget(evaluations=40)))
    await execute(services, lambda event: None)
    asked = (tmp_path / "run/evaluations.log").read_text().splitlines()
    assert len(asked) == len(set(asked)) == len(services.store.all("evaluation", Evaluation))


async def test_the_budget_of_evaluations_ends_the_search_well(tmp_path: Path) -> None:
    """A small budget stops the search, and the best candidate so far is still confirmed and delivered."""
    services = small_services(tmp_path / "run", _settings(budget=Budget(evaluations=4), repairs=0))
    delivery = await execute(services, lambda event: None)
    assert delivery.ended == "evaluations"
    assert delivery.candidate != ROOT
    assert len(services.store.all("evaluation", Evaluation)) <= 4 + 1


async def test_where_nothing_is_faster_the_reference_is_kept(tmp_path: Path) -> None:
    """When the only candidates tried fail, the run says to keep the reference, and writes no kernel."""
    settings = _settings(budget=Budget(evaluations=1), repairs=0, search_settings=SearchSettings(batch=1))
    services = small_services(tmp_path / "run", settings)
    delivery = await execute(services, lambda event: None)
    assert delivery.candidate == ROOT
    assert "Keep the reference" in delivery.reason
    assert not (tmp_path / "run/result/kernel.py").exists()


async def test_a_refusal_is_recorded_and_not_asked_again(tmp_path: Path) -> None:
    """What the coder refuses is kept with its reason, costs no evaluation and is planned once a parent."""
    services = small_services(tmp_path / "run", _settings(budget=Budget(evaluations=60), search_settings=SearchSettings(patience=0)))
    await execute(services, lambda event: None)
    plans = [p for p in services.store.all("plan", Plan).values() if p.action.parameters == {"BLOCK": 512}]
    assert plans
    assert len({p.parent for p in plans}) == len(plans)


async def test_running_a_finished_run_again_does_nothing(tmp_path: Path) -> None:
    """Executing a run that has ended returns the same delivery and evaluates nothing."""
    first = await execute(small_services(tmp_path / "run"), lambda event: None)
    asked = (tmp_path / "run/evaluations.log").read_text()
    again = await execute(small_services(tmp_path / "run"), lambda event: None)
    assert again == first
    assert (tmp_path / "run/evaluations.log").read_text() == asked


@pytest.mark.parametrize("event", ["planned", "reviewed"])
async def test_a_run_cut_short_between_a_node_s_end_and_its_checkpoint_goes_on(tmp_path: Path, event: str) -> None:
    """What the node wrote is there and its checkpoint is not: the run goes on from there, to the same end, and judges nothing twice."""
    whole = await execute(small_services(tmp_path / "whole"), lambda event: None)
    heard: list[str] = []

    def stop(one: dict[str, Any]) -> None:
        heard.append(one["event"])
        if heard.count(event) == 3:
            raise ConnectionError

    services = small_services(tmp_path / "run")
    with pytest.raises(ConnectionError):
        await execute(services, stop)
    services.store.close()
    with closing(sqlite3.connect(tmp_path / "run" / "checkpoints.db")) as file, file:
        file.execute("DELETE FROM checkpoints WHERE checkpoint_id = (SELECT MAX(checkpoint_id) FROM checkpoints WHERE checkpoint_ns = '')")
    again = await execute(small_services(tmp_path / "run"), lambda event: None)
    assert again == whole
    keys = (tmp_path / "run" / "evaluations.log").read_text().splitlines()
    assert len(keys) == len(set(keys))


def test_a_run_cancelled_while_it_opens_its_checkpoints_leaves_no_thread(tmp_path: Path) -> None:
    """Whenever a cancel comes, what opens the checkpoints has ended when the loop is closed."""

    async def cancelled(folder: Path, steps: int) -> None:
        run = asyncio.ensure_future(execute(small_services(folder, _settings()), lambda event: None))
        for _ in range(steps):
            await asyncio.sleep(0)
        run.cancel()
        with suppress(asyncio.CancelledError):
            await run

    before = set(threading.enumerate())
    for steps in range(12):
        asyncio.run(cancelled(tmp_path / f"run{steps}", steps // 3))
    # a thread that has answered may take a moment to end; pytest hears what one raises
    for thread in set(threading.enumerate()) - before:
        thread.join(10)
        assert not thread.is_alive()
