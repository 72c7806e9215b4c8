"""The cost model's choices in the loop: tried first, each once a run, from whatever parent."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from agents import AgentTeam
from agents.coder.builtin import BuiltinCoder
from agents.planner.builtin import BuiltinPlanner
from agents.profiler.builtin import BuiltinProfiler
from agents.reviewer.builtin import BuiltinReviewer
from graphs.optimize.execute import execute
from graphs.run.settings import RunSettings
from graphs.search.protocol import SearchSettings
from tests.support.loop import TextPool, small_services
from tools.cost.choice import chosen_number
from tools.problems import load_problem
from tools.records import Budget, Candidate, Evaluation, EvaluationRequest, Plan, Problem
from tools.tracing import RunStore

SOURCE = """import torch

rows, columns = 4096, 4096


def softmax(x):
    return torch.softmax(x, -1)


def example_inputs():
    return (torch.randn(rows, columns),)
"""


class SlowerPool(TextPool):
    """Each further candidate is a little slower than the one before, so that a search has the most parents to choose from."""

    async def evaluate(self, request: EvaluationRequest) -> Evaluation:
        """Time a candidate by how many were evaluated before it."""
        known = self._log.read_text().splitlines() if self._log.is_file() else []
        return await super().evaluate(request.model_copy(update={"source": f"# time: {50 + len(known)}\n# of {request.candidate}\n"}))


@pytest.fixture(scope="module")
def problem(tmp_path_factory: pytest.TempPathFactory) -> Problem:
    """A real problem, which can be traced."""
    file = tmp_path_factory.mktemp("problem") / "softmax.py"
    file.write_text(SOURCE)
    return load_problem(file)


def run(folder: Path, problem: Problem, evaluations: int, search: str = "greedy") -> RunStore:
    """See a run of the built-in agents through."""
    team = AgentTeam(planner=BuiltinPlanner(), coder=BuiltinCoder(), profiler=BuiltinProfiler(), reviewer=BuiltinReviewer())
    budget, method = Budget(evaluations=evaluations), SearchSettings(batch=2)
    settings = RunSettings(target="h200", memory=False, budget=budget, search=search, search_settings=method)
    services = small_services(folder, settings, team=team)
    services.problem, services.pool = problem, SlowerPool(folder / "evaluations.log")
    services.store.put("problem", problem.id, problem)
    asyncio.run(execute(services, lambda event: None))
    return services.store


def numbers(store: RunStore) -> list[int]:
    """Numbers of the choices that were planned."""
    return [chosen_number(plan.action) for plan in store.all("plan", Plan).values() if chosen_number(plan.action)]


def test_a_small_budget_is_spent_on_choices(tmp_path: Path, problem: Problem) -> None:
    """With two evaluations, the first two choices are what is evaluated; the trace shows them as actions."""
    store = run(tmp_path / "run", problem, 2)
    actions = [str(one.action) for one in store.all("candidate", Candidate).values()]
    assert sorted(actions) == [f"algorithm forward (implementation=modelled, choice={number})" for number in (1, 2)]


def test_a_choice_is_tried_once_a_run(tmp_path: Path, problem: Problem) -> None:
    """Two parents that both may be offered a choice do not both take it."""
    store = run(tmp_path / "run", problem, 6)
    assert len(numbers(store)) == len(set(numbers(store))) >= 3


@pytest.mark.parametrize("search", ["bandit", "macro", "evolution", "tree", "random"])
def test_every_search_method_sees_choices_as_actions(tmp_path: Path, problem: Problem, search: str) -> None:
    """A method that rates or draws its steps ends well with choices among them."""
    store = run(tmp_path / "run", problem, 4, search)
    assert store.all("candidate", Candidate)
