"""What could not be judged is said so: it is no verdict on a candidate, and the end of no run that has another one."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Any

from agents.coder.protocol import CodingTask, Draft, Refusal
from graphs.optimize.execute import execute
from graphs.run.judge import judge
from graphs.run.records import Delivery
from graphs.run.settings import RunSettings
from graphs.search.protocol import SearchSettings
from tests.support.loop import BlockCoder, TextPool, small_services, small_team
from tools.records import ROOT, Action, ActionKind, Budget, Candidate, Evaluation, EvaluationRequest, Verdict

BATCH = SearchSettings(batch=6)


class FailingPool(TextPool):
    """Cannot judge some candidates, by their block, in some stages."""

    def __init__(self, log: Path, verdict: Verdict, stages: tuple[str, ...], *blocks: int) -> None:
        """Give `verdict` to candidates of these blocks; to all where none is named."""
        super().__init__(log)
        self._failing, self._stages, self._blocks = verdict, stages, blocks
        self.asked = 0

    async def evaluate(self, request: EvaluationRequest) -> Evaluation:
        """Judge, or fail."""
        self.asked += 1
        named = not self._blocks or any(f"# block: {block}\n" in request.source for block in self._blocks)
        if request.stage in self._stages and named:
            return Evaluation(candidate=request.candidate, verdict=self._failing, notes=("The machine was busy.",))
        return await super().evaluate(request)


async def _ended(folder: Path, verdict: Verdict, stages: tuple[str, ...], *blocks: int) -> Delivery:
    services = small_services(
        folder, RunSettings(target="h200", memory=False, budget=Budget(evaluations=12), repairs=0, search_settings=BATCH)
    )
    services.pool = FailingPool(folder / "evaluations.log", verdict, stages, *blocks)
    return await execute(services, lambda event: None)


async def test_the_next_best_is_confirmed_where_the_best_could_not_be(tmp_path: Path) -> None:
    """A confirmation that timed out leaves the run its next best candidate."""
    delivery = await _ended(tmp_path / "run", Verdict.TIMED_OUT, ("confirm",), 128)
    assert "# block: 128\n" not in (tmp_path / "run/result/kernel.py").read_text()
    assert delivery.candidate != ROOT
    assert not delivery.unconfirmed


async def test_what_nobody_could_confirm_is_written_as_unconfirmed(tmp_path: Path) -> None:
    """Where no confirmation could be judged the best of the search is kept under that name, with why, and nothing is delivered."""
    delivery = await _ended(tmp_path / "run", Verdict.TIMED_OUT, ("confirm",))
    result = tmp_path / "run/result"
    assert delivery.candidate == ROOT
    assert not (result / "kernel.py").exists()
    assert "# block: 128\n" in (result / "unconfirmed.py").read_text()
    assert "TIMED_OUT when confirmed (The machine was busy)" in delivery.reason


async def test_a_refuted_candidate_is_not_written(tmp_path: Path) -> None:
    """What a confirmation found wrong is not unconfirmed but wrong."""
    delivery = await _ended(tmp_path / "run", Verdict.WRONG, ("confirm",))
    assert (delivery.candidate, delivery.unconfirmed, delivery.unjudged) == (ROOT, "", "")


async def test_a_run_in_which_nothing_could_be_judged_says_so(tmp_path: Path) -> None:
    """Candidates without a verdict are not called slow or wrong."""
    delivery = await _ended(tmp_path / "run", Verdict.INFRASTRUCTURE, ("search",))
    assert "no candidate could be judged (The machine was busy)" in delivery.reason
    assert delivery.unjudged


async def test_what_the_machine_failed_at_is_judged_again(tmp_path: Path) -> None:
    """A job that ended as INFRASTRUCTURE is not finished: asked for again, it is tried again; one with a verdict is not."""
    services = small_services(tmp_path / "run")
    pool = FailingPool(tmp_path / "log", Verdict.INFRASTRUCTURE, ("search",), 64)
    services.pool = pool
    for block, times in ((64, 2), (32, 1)):
        request = services.request(_candidate(services.problem.id, block))
        before = pool.asked
        await judge(services, request)
        await judge(services, request)
        assert pool.asked - before == times


def _candidate(problem: str, block: int) -> Candidate:
    action = Action(kind=ActionKind.TILING, region="r0", parameters={"BLOCK": block})
    return Candidate(problem=problem, parent=ROOT, action=action, source=f"# block: {block}\n", schedule=None, coder="test")


class IdleCoder(BlockCoder):
    """Hands back what failed as it was."""

    async def repair(self, task: CodingTask, draft: Draft, evaluation: Evaluation, attempt: int) -> Draft | Refusal:
        """Change nothing."""
        return draft


async def test_a_repair_that_changes_nothing_is_not_judged(tmp_path: Path) -> None:
    """A source whose verdict is known is not put forward again: one try a draft, however many repairs are allowed."""
    settings = RunSettings(target="h200", memory=False, budget=Budget(evaluations=12), repairs=3, search_settings=BATCH)
    services = small_services(tmp_path / "run", settings, team=small_team(IdleCoder()))
    await execute(services, lambda event: None)
    refusals = [one.reason for one in services.store.all("refusal", Refusal).values()]
    assert any("left the source as it is" in reason for reason in refusals)
    repairs = [span for span in services.store.spans() if span.node == "repair"]
    assert len(repairs) == len({span.subject for span in repairs})


async def test_wall_time_cuts_off_what_is_in_flight(tmp_path: Path) -> None:
    """At the end of --minutes an evaluation under way is cancelled, and nothing is said about its candidate."""
    settings: dict[str, Any] = {"target": "h200", "memory": False}
    services = small_services(tmp_path / "run", RunSettings(**settings, budget=Budget(wall_s=1.0)))
    services.pool = TextPool(tmp_path / "log", delay=60.0)
    began = time.monotonic()
    delivery = await execute(services, lambda event: None)
    assert time.monotonic() - began < 30
    assert delivery.ended == "wall_s"
    assert delivery.candidate == ROOT
    assert not services.store.all("evaluation", Evaluation)


class SlowPool(TextPool):
    """Judges nothing in time."""

    async def evaluate(self, request: EvaluationRequest) -> Evaluation:
        """Take longer than there is."""
        await asyncio.sleep(60.0)
        return await super().evaluate(request)


async def test_candidates_that_time_did_not_reach_are_not_called_slow(tmp_path: Path) -> None:
    """Where all evaluations were cut off nothing is known of any candidate, and that is said."""
    budget = Budget(evaluations=12, wall_s=8.0)
    services = small_services(tmp_path / "run", RunSettings(target="h200", memory=False, budget=budget, repairs=0, search_settings=BATCH))
    services.pool = SlowPool(tmp_path / "run" / "evaluations.log")
    delivery = await execute(services, lambda event: None)
    assert "no candidate was judged in the time that there was" in delivery.reason
