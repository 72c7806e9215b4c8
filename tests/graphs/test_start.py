"""A kernel that the user brings, and checks that a reviewer asks for, on the small landscape of tests/support/loop.py."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from agents import AgentTeam
from agents.profiler.builtin import BuiltinProfiler
from agents.reviewer.builtin import BuiltinReviewer
from agents.reviewer.protocol import Check, Review, ReviewCase
from graphs.optimize.execute import execute
from graphs.run.settings import RunSettings
from graphs.run.starting import USER, read_start
from graphs.search.protocol import SearchSettings
from tests.support.loop import BlockCoder, FirstOptionPlanner, TextPool, small_services
from tools.errors import UserError
from tools.records import ROOT, Budget, Candidate, Evaluation, EvaluationRequest, Plan, Verdict

OWN = "# block: 16\n# time: 60\n# verdict: PASS\n# mine\n"


def _settings(start: str = "", **fields: Any) -> RunSettings:
    given = {"budget": Budget(evaluations=5), **fields}
    return RunSettings(target="h200", memory=False, start=start, start_file="mine.py" if start else "", **given)


@pytest.mark.parametrize("search", ["greedy", "macro", "evolution", "portfolio"])
async def test_a_kernel_that_passes_is_a_parent(tmp_path: Path, search: str) -> None:
    """It is judged first, as the user's own, and later plans may build on it, whatever the search method."""
    services = small_services(tmp_path / "run", _settings(OWN, search=search))
    await execute(services, lambda event: None)
    first = next(iter(services.store.all("candidate", Candidate).values()))
    assert (first.source, first.coder, first.parent) == (OWN, USER, ROOT)
    assert next(iter(services.store.all("evaluation", Evaluation).values())).verdict is Verdict.PASS
    plans = list(services.store.all("plan", Plan).values())
    assert [plan.planner for plan in plans].count(USER) == 1
    if search == "greedy":
        assert any(plan.parent == first.id for plan in plans)


async def test_a_kernel_that_fails_is_an_error(tmp_path: Path) -> None:
    """Where it does not pass and nobody mends it, the run ends with what is wrong and how to go on, again when it is resumed."""
    for _ in range(2):
        services = small_services(tmp_path / "run", _settings(OWN.replace("PASS", "CRASHED")))
        with pytest.raises(UserError, match=r"mine.py, crashed \(Error: as the text says\).*leave --start out"):
            await execute(services, lambda event: None)
    assert len((tmp_path / "run" / "evaluations.log").read_text().splitlines()) == 1


async def test_a_kernel_that_can_be_mended_is_repaired(tmp_path: Path) -> None:
    """A coder that can mend it does, and the mended one is the coder's own."""
    services = small_services(tmp_path / "run", _settings("# block: 32\n# time: 60\n# verdict: WRONG\n"))
    await execute(services, lambda event: None)
    own, mended = list(services.store.all("candidate", Candidate).values())[:2]
    assert (own.coder, own.repairs) == (USER, 0)
    assert (mended.coder, mended.repairs) == ("blocks", 1)


def test_a_file_without_a_kernel_is_refused(tmp_path: Path) -> None:
    """A file that is no candidate is refused before anything is made."""
    file = tmp_path / "mine.py"
    file.write_text("class Model:\n    pass\n")
    with pytest.raises(UserError, match="defines no class ModelNew"):
        read_start(file)
    file.write_text("class ModelNew:\n    pass\n")
    assert read_start(file) == file.read_text()


class Moody(TextPool):
    """Judges block 128 wrong where it is looked at closely."""

    async def evaluate(self, request: EvaluationRequest) -> Evaluation:
        """Read the verdict, or be strict."""
        if request.stage == "confirm" and "# block: 128" in request.source:
            return Evaluation(candidate=request.candidate, verdict=Verdict.WRONG, log="Error: seen from close by")
        return await super().evaluate(request)


class Wary:
    """A reviewer that wants to have every accepted candidate confirmed."""

    name = "wary"

    async def review(self, case: ReviewCase) -> Review:
        """Ask for the check."""
        return (await BuiltinReviewer().review(case)).model_copy(update={"checks": (Check.CONFIRM,)})


async def test_a_check_can_take_acceptance_away(tmp_path: Path) -> None:
    """What does not pass the check that the reviewer asked for is accepted no more and not delivered; what passes says so."""
    team = AgentTeam(planner=FirstOptionPlanner(), coder=BlockCoder(), profiler=BuiltinProfiler(), reviewer=Wary())
    settings = _settings(budget=Budget(evaluations=12), search_settings=SearchSettings(batch=6))
    services = small_services(tmp_path / "run", settings, team=team)
    services.pool = Moody(tmp_path / "run" / "evaluations.log")
    delivery = await execute(services, lambda event: None)
    reviews = list(services.store.all("review", Review).values())
    taken = [review for review in reviews if "as the reviewer asked it was WRONG" in review.reason]
    assert taken
    assert not any(review.accepted or review.gain for review in taken)
    assert any("Checked further as asked: it passed." in review.concerns for review in reviews if review.accepted)
    delivered = services.store.candidate(delivery.candidate)
    assert delivered is not None
    assert "# block: 128" not in delivered.source


async def test_no_check_is_made_of_what_is_not_accepted(tmp_path: Path) -> None:
    """Asking for a check of a candidate that was not accepted costs nothing and changes nothing."""
    team = AgentTeam(planner=FirstOptionPlanner(), coder=BlockCoder(), profiler=BuiltinProfiler(), reviewer=Wary())
    services = small_services(tmp_path / "run", _settings(OWN.replace("60", "300"), budget=Budget(evaluations=1)), team=team)
    await execute(services, lambda event: None)
    assert len((tmp_path / "run" / "evaluations.log").read_text().splitlines()) == 1
