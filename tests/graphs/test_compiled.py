"""torch.compile's kernels as a parent, on the small landscape of tests/support/loop.py."""

from __future__ import annotations

from pathlib import Path

import pytest

from agents.coder.protocol import Draft
from graphs.optimize.execute import execute
from graphs.run.compiled import COMPILED
from graphs.run.context import Services
from graphs.run.settings import RunSettings
from tests.support.loop import small_services
from tools.records import ROOT, Budget, Candidate, Evaluation, Plan, Verdict

SOURCE = "# time: 30\n# verdict: PASS\n# of torch.compile\n"


def _services(folder: Path, source: str = SOURCE, **fields: object) -> Services:
    """A run whose file of torch.compile's kernels is made already."""
    given = {"parents": "torch.compile", "budget": Budget(evaluations=4), **fields}
    services = small_services(
        folder, RunSettings.model_validate({"target": "h200", "memory": False, "policy": {"name": "default"}, **given})
    )
    services.store.put("compiled", services.problem.id, Draft(source=source, notes=("Derived from torch.compile.",)))
    return services


def _of_torch(services: Services) -> list[Candidate]:
    return [one for one in services.store.all("candidate", Candidate).values() if one.coder == COMPILED]


@pytest.mark.parametrize("search", ["greedy", "macro", "evolution", "portfolio"])
async def test_it_is_judged_in_the_first_round_and_delivered_where_it_is_best(tmp_path: Path, search: str) -> None:
    """Beside the search method's own plans, whatever the method; the best of the run is what is delivered."""
    services = _services(tmp_path / "run", search=search)
    delivery = await execute(services, lambda event: None)
    [made] = _of_torch(services)
    assert (made.parent, made.source, made.notes) == (ROOT, SOURCE, ("Derived from torch.compile.",))
    assert [plan.planner for plan in services.store.all("plan", Plan).values()].count(COMPILED) == 1
    assert delivery.candidate == made.id


async def test_it_takes_no_evaluation_from_a_search_that_has_one(tmp_path: Path) -> None:
    """Where the budget has room for a single plan, that is the search method's."""
    services = _services(tmp_path / "run", budget=Budget(evaluations=1))
    await execute(services, lambda event: None)
    assert not _of_torch(services)
    assert len(services.store.all("evaluation", Evaluation)) == 1


@pytest.mark.parametrize("parents", ["none", "auto"])
async def test_it_is_left_out_where_it_is_not_wanted(tmp_path: Path, parents: str) -> None:
    """With `none` nowhere; with `auto` not where times are estimates, as here."""
    services = _services(tmp_path / "run", parents=parents)
    await execute(services, lambda event: None)
    assert not _of_torch(services)


async def test_nobody_mends_it(tmp_path: Path) -> None:
    """Where it fails no coder is asked to repair it: it stays as it is, and the search goes on."""
    services = _services(tmp_path / "run", SOURCE.replace("PASS", "WRONG"))
    delivery = await execute(services, lambda event: None)
    [made] = _of_torch(services)
    evaluation = services.evaluation(made.id)
    assert evaluation is not None
    assert evaluation.verdict is Verdict.WRONG
    assert delivery.candidate not in ("", made.id)
