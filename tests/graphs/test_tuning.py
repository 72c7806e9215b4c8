"""The action `tune` in the loop: its trials, its budget, its cache, and a run that was cut short in it."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

import pytest

from agents.coder.builtin import BuiltinCoder
from agents.coder.tuning import tuning_action
from agents.records.tune import is_tuning
from agents.samples.case import profile
from graphs.optimize.briefing import recalled_for
from graphs.optimize.planning import plans_for
from graphs.refine.tuning import tune_schedule
from graphs.run.context import Services
from graphs.run.records import Tuning
from graphs.run.settings import RunSettings
from graphs.search.protocol import Ask
from kernelwright.screen.facts import tree_facts
from tests.support.loop import TextPool, small_services, small_team
from tools.codegen import Schedule, apply, emit, initial_schedule, options, trace
from tools.hardware import load_sheet
from tools.problems import load_problem
from tools.records import ROOT, Action, ActionKind, Budget, Candidate, Evaluation, EvaluationRequest, Plan, Problem

SOURCE = """import torch

rows, columns = 1024, 1024


def exp(x):
    return torch.exp(x) * 2


def example_inputs():
    return (torch.randn(rows, columns),)
"""


class NumbersPool(TextPool):
    """Says that a kernel with two warps and 512 elements a program is the fastest."""

    async def evaluate(self, request: EvaluationRequest) -> Evaluation:
        """Time a candidate by its block and warps; dies where the file `die` says so."""
        log = self._log.read_text().splitlines() if self._log.is_file() else []
        if (dies := self._log.with_name("die")).is_file() and len(log) >= int(dies.read_text()):
            raise ConnectionError("the machine is gone")
        block, warps = (int(re.findall(rf"{name}=(\d+)", request.source)[0]) for name in ("BLOCK", "num_warps"))
        time = 20 + abs(block.bit_length() - 10) * 5 + abs(warps.bit_length() - 2) * 5
        return await super().evaluate(request.model_copy(update={"source": f"# time: {time}\n# of {request.candidate}\n"}))


@pytest.fixture(scope="module")
def problem(tmp_path_factory: pytest.TempPathFactory) -> Problem:
    """A real problem, which can be traced."""
    file = tmp_path_factory.mktemp("problem") / "exp.py"
    file.write_text(SOURCE)
    return load_problem(file)


def opened(folder: Path, problem: Problem, **settings: object) -> tuple[Services, Plan]:
    """A run whose first candidate waits to be tuned."""
    chosen = RunSettings.model_validate({"target": "h200", "tune": 8, "tuned": str(folder.parent / "tuning"), **settings})
    services = small_services(folder, chosen, team=small_team(BuiltinCoder()))
    services.problem, services.pool = problem, NumbersPool(folder / "evaluations.log")
    services.store.put("problem", problem.id, problem)
    graph, sheet = trace(problem), load_sheet("h200")
    first = initial_schedule(graph)
    schedule = apply(graph, first, options(graph, first, sheet)[0])
    made = Action(kind=ActionKind.FUSION, region="r0")
    source = emit(problem, graph, schedule).source
    parent = Candidate(
        problem=problem.id, parent=ROOT, action=made, source=source, schedule=schedule.model_dump_json(), coder="builtin"
    )  # fmt: skip
    services.store.put_candidate(parent)
    action = tuning_action(parent, 8, ())
    assert action is not None
    plan = Plan(parent=parent.id, action=action, rationale="It is untuned.", planner="test")
    services.store.put("plan", plan.id, plan, subject=parent.id)
    return services, plan


def test_trials_find_a_faster_setting(tmp_path: Path, problem: Problem) -> None:
    """The best trial is faster than the first one, each trial is one evaluation, and told; the trace folds them into one candidate."""
    services, plan = opened(tmp_path / "run", problem, budget=Budget(evaluations=0))
    heard: list[str] = []
    done = asyncio.run(tune_schedule(services, plan, lambda request: heard.append(request.candidate)))
    assert sorted(heard) == sorted(trial.candidate for trial in done.trials)
    times = [trial.time_us for trial in done.trials if trial.time_us]
    assert len(done.trials) == 8 == services.store.spent().evaluations
    best = services.evaluation(done.best)
    assert best is not None
    assert best.time_us == min(times) < max(times)
    facts = tree_facts(services.store)
    assert [len(line["trials"]) for line in facts["candidates"] if "tune=" in line["action"]] == [8]


def test_half_of_the_evaluations_left_is_the_most(tmp_path: Path, problem: Problem) -> None:
    """A budget of six evaluations lets a tuning of eight trials take three."""
    services, plan = opened(tmp_path / "run", problem, budget=Budget(evaluations=6))
    assert len(asyncio.run(tune_schedule(services, plan)).trials) == 3


def test_next_run_begins_where_this_one_ended(tmp_path: Path, problem: Problem) -> None:
    """What one run found is the first trial of the next; a run without memory knows nothing of it."""
    services, plan = opened(tmp_path / "one", problem, budget=Budget(evaluations=0))
    best = asyncio.run(tune_schedule(services, plan))
    found = next(trial.point for trial in best.trials if trial.candidate == best.best)
    again = asyncio.run(tune_schedule(*opened(tmp_path / "two", problem)))
    assert (again.known, again.trials[0].point) == ((found,), found)
    assert asyncio.run(tune_schedule(*opened(tmp_path / "three", problem, memory=False))).known == ()


def test_cut_short_and_resumed_is_the_same_tuning(tmp_path: Path, problem: Problem) -> None:
    """A tuning that died in its third trial goes on to the same trials, and evaluates none twice."""
    whole = asyncio.run(tune_schedule(*opened(tmp_path / "whole", problem, memory=False)))
    services, plan = opened(tmp_path / "cut", problem, memory=False)
    (tmp_path / "cut" / "die").write_text("2")
    with pytest.raises(ConnectionError):
        asyncio.run(tune_schedule(services, plan))
    (tmp_path / "cut" / "die").unlink()
    resumed, _ = opened(tmp_path / "cut", problem, memory=False)
    assert asyncio.run(tune_schedule(resumed, plan)) == whole
    keys = (tmp_path / "cut" / "evaluations.log").read_text().splitlines()
    assert len(keys) == len(set(keys)) == len(whole.trials)


def test_a_structure_is_offered_once(tmp_path: Path, problem: Problem) -> None:
    """A schedule of the structure that was tuned is not offered for tuning again; a candidate of free text never is."""
    services, plan = opened(tmp_path / "run", problem)
    done = asyncio.run(tune_schedule(services, plan))
    structures = {one.structure for one in services.store.all("tuning", Tuning).values()}
    assert tuning_action(services.candidate(done.best), 8, structures) is None
    assert tuning_action(services.candidate(plan.parent).model_copy(update={"schedule": None}), 8, ()) is None
    assert tuning_action(services.candidate(plan.parent), 0, ()) is None
    assert is_tuning(plan.action)


async def test_one_structure_is_tuned_once_a_round(tmp_path: Path, problem: Problem) -> None:
    """Of two parents that differ in numbers only, one is tuned in a round, and the other is offered its further steps."""
    services, plan = opened(tmp_path / "run", problem)
    parent, graph = services.candidate(plan.parent), trace(problem)
    own = Schedule.model_validate_json(parent.schedule or "")
    step = next(action for action in options(graph, own, load_sheet("h200")) if "num_warps" in action.parameters)
    schedule = apply(graph, own, step)
    source = emit(problem, graph, schedule).source
    other = parent.model_copy(update={"source": source, "schedule": schedule.model_dump_json()})
    services.store.put_candidate(other)
    services.store.put("profile", other.id, profile(candidate=other.id))
    await recalled_for(services, other.id, 2)
    free, taken = [await plans_for(services, Ask(parent=other.id), 2, 50, made) for made in ((), (plan,))]
    assert [one for one in free if is_tuning(one.action)]
    assert [one.action for one in taken] == [one.action for one in free if not is_tuning(one.action)]
