"""What a run's wall time is put down to, and the baselines that came late."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from graphs.optimize.execute import execute
from graphs.optimize.wall import REST, wall
from graphs.run.late_baselines import keep_late_baselines
from graphs.run.settings import RunSettings
from tests.support.loop import TextPool, small_problem, small_services
from tests.support.makers import passed, sample, timing
from tools.records import Baselines, Budget, Tier
from tools.tracing import RunStore


async def test_the_wall_time_of_a_run_is_accounted_for(tmp_path: Path) -> None:
    """Its parts add up to the whole, and all but two fifths of it are named, where evaluations take most of it."""
    settings = RunSettings(target="h200", memory=False, budget=Budget(evaluations=4))
    services = small_services(tmp_path, settings)
    services.pool = TextPool(tmp_path / "log", delay=0.5)
    await execute(services, lambda event: None)
    found = wall(services.store)
    assert sum(share.wall_s for share in found.shares.values()) == pytest.approx(found.seconds)
    assert found.shares["evaluation"].wall_s >= 1.0
    assert found.shares[REST].wall_s < 0.4 * found.seconds


def test_a_run_that_has_not_begun_took_no_time(tmp_path: Path) -> None:
    """It has no session yet."""
    assert wall(RunStore.create(tmp_path / "run", {})).seconds == 0


def test_a_late_baseline_joins_the_record_of_the_reference(tmp_path: Path) -> None:
    """Once an evaluation was timed beside it, the run's baselines have it too, with a note on where it came from."""
    store, problem = RunStore.create(tmp_path / "run", {}), small_problem()
    store.put("baselines", problem.id, Baselines(tier=Tier.IN_PROCESS, samples={"eager": sample(250.0)}, device="H200"))
    services: Any = SimpleNamespace(store=store, problem=problem)
    timed = timing(100.0)
    both = timed.model_copy(update={"baselines": {"eager": sample(250.0), "compile": sample(120.0)}})
    for found in (both, both):
        keep_late_baselines(services, passed(timing=found))
    known = store.get("baselines", problem.id, Baselines)
    assert known is not None
    assert known.best_us == 120.0
    assert len(known.notes) == 1
