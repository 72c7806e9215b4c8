"""Schedules whose sums stand before their products, in the hands of those who read schedules: options, tuner, cost model."""

from __future__ import annotations

import pytest

from agents.coder.modelled import expectations
from agents.coder.protocol import Draft
from agents.coder.tuning import TuningSpace, tuning_action
from agents.samples import case as samples
from tests.agents.coder.test_builtin import CODER, made, some_options, task
from tests.tools.codegen.harness import problem_of
from tests.tools.codegen.samples import function
from tools.records import Candidate, Problem


@pytest.fixture(scope="module")
def problem() -> Problem:
    """The sum of a product's rows."""
    return problem_of(function("torch.relu((x @ y).sum(1))", "torch.randn(ROWS, COLS), torch.randn(COLS, ROWS)", "x, y"))


async def pushed_down(problem: Problem) -> Candidate:
    """The candidate that the action makes of the reference."""
    (action,) = [each for each in await some_options(problem) if "algebra" in each.parameters]
    draft = await CODER.write(task(problem, action))
    assert isinstance(draft, Draft), draft
    return made(problem, draft, action)


async def test_a_sum_pushed_down_is_a_parent_like_others(problem: Problem) -> None:
    """Its own options can be written, and the cost model has a word on them or none, but never fails."""
    parent = await pushed_down(problem)
    found = await some_options(problem, parent)
    assert found
    assert isinstance(expectations(problem, parent, found, samples.SHEET), dict)
    assert isinstance(await CODER.write(task(problem, found[-1], parent)), Draft)


async def test_a_sum_pushed_down_can_be_tuned(problem: Problem) -> None:
    """The tuner finds points in its schedule and writes them."""
    parent = await pushed_down(problem)
    action = tuning_action(parent, 4, ())
    assert action is not None
    space = TuningSpace(problem, parent, action, samples.SHEET)
    assert space.draft(next(iter(space.tunable.settings))) is not None
