"""The cost model's choices as actions of the built-in coder."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from agents.coder.builtin import BuiltinCoder
from agents.coder.modelled import choice_of, choices_of, expectations, smaller_schedule
from agents.coder.protocol import CodingTask, Draft, Refusal
from agents.planner.builtin import BuiltinPlanner
from agents.samples import case as samples
from tools.codegen import Schedule
from tools.cost.choice import choice_action, chosen_number
from tools.problems import load_problem
from tools.records import ROOT, Action, Candidate, Evaluation, PrecisionPolicy, Problem, Verdict

CODER = BuiltinCoder()
LARGE = """import torch


def product(x, y):
    return torch.matmul(x, y)


def example_inputs():
    return (torch.randn(4096, 4096), torch.randn(4096, 4096))
"""


@pytest.fixture(scope="module")
def problem(tmp_path_factory: pytest.TempPathFactory) -> Problem:
    """A 4096³ product of float32 under the exact policy."""
    path = tmp_path_factory.mktemp("problem") / "product.py"
    path.write_text(LARGE)
    return load_problem(path, PrecisionPolicy())


def task(problem: Problem, action: Action, parent: Candidate | None = None) -> CodingTask:
    """A task on the problem."""
    return samples.task(parent, action).model_copy(update={"problem": problem})


async def made(problem: Problem, action: Action) -> Candidate:
    """The candidate of an action on the reference."""
    draft = await CODER.write(task(problem, action))
    assert isinstance(draft, Draft)
    return Candidate(
        problem=problem.id, parent=ROOT, action=action, source=draft.source, schedule=draft.schedule, coder="builtin", notes=draft.notes
    )


async def test_the_first_option_is_the_first_choice(problem: Problem) -> None:
    """A large float32 product under the exact policy starts as three products of halves, and the note says that its time is estimated."""
    first = (await CODER.options(problem, None, samples.SHEET))[0]
    candidate = await made(problem, first)
    assert first == choice_action(1)
    assert '"precision":"fp16x3"' in (candidate.schedule or "")
    assert re.search(r"expects about \d+ µs on the device \(estimated\)", candidate.notes[-1])


async def test_a_parent_is_not_offered_its_own_schedule(problem: Problem) -> None:
    """A candidate that is a choice is offered the others, and single knobs after them."""
    parent = await made(problem, choice_action(2))
    found = await CODER.options(problem, parent, samples.SHEET)
    numbers = [chosen_number(action) for action in found]
    assert numbers[:2] == [1, 3]
    assert numbers[-1] == 0


async def test_a_choice_beyond_the_last_is_refused(problem: Problem) -> None:
    """The refusal says which choice there is not."""
    result = await CODER.write(task(problem, choice_action(99)))
    assert isinstance(result, Refusal)
    assert "99" in result.reason


async def test_a_choice_that_is_too_large_gets_fewer_stages(problem: Problem) -> None:
    """What did not build is written again with one stage less and otherwise as it was; a wrong result is not mended so."""
    candidate = await made(problem, choice_action(1))
    draft = Draft(source=candidate.source, schedule=candidate.schedule, notes=())
    failed = Evaluation(candidate=candidate.id, verdict=Verdict.BUILD_FAILED, log="out of resource: shared memory")
    mended = await CODER.repair(task(problem, choice_action(1)), draft, failed, 1)
    assert isinstance(mended, Draft)
    before, after = (Schedule.model_validate_json(each.schedule or "").regions[0].parameters for each in (draft, mended))
    assert after == {**before, "num_stages": int(before["num_stages"]) - 1}
    wrong = Evaluation(candidate=candidate.id, verdict=Verdict.WRONG, log="")
    assert isinstance(await CODER.repair(task(problem, choice_action(1)), draft, wrong, 1), Refusal)


async def test_a_captured_choice_that_crashes_is_launched_one_by_one(problem: Problem) -> None:
    """Its kernels may be right: only the CUDA graph is left out, and nothing is made smaller."""
    candidate = await made(problem, choice_action(1))
    plain = Schedule.model_validate_json(candidate.schedule or "")
    draft = Draft(source="", schedule=plain.model_copy(update={"captured": True}).model_dump_json(), notes=())
    crashed = Evaluation(candidate=candidate.id, verdict=Verdict.CRASHED, log="operation not permitted when stream is capturing")
    mended = await CODER.repair(task(problem, choice_action(1)), draft, crashed, 1)
    assert isinstance(mended, Draft)
    assert Schedule.model_validate_json(mended.schedule or "") == plain
    assert "without a CUDA graph" in mended.notes[-1]


def test_shrinking_comes_to_an_end(problem: Problem) -> None:
    """A schedule can be made smaller a limited number of times."""
    schedule: Schedule | None = choices_of(problem, samples.SHEET)[0].schedule
    steps = 0
    while schedule := smaller_schedule(schedule):
        steps += 1
    assert 3 < steps < 20


async def test_expectations_tell_gains_from_losses(problem: Problem) -> None:
    """Of a candidate with halves the model expects a loss from ordinary cores, and says so as an estimate."""
    parent = await made(problem, choice_action(1))
    found = await CODER.options(problem, parent, samples.SHEET)
    expected = expectations(problem, parent, found, samples.SHEET)
    ieee = next(action for action in found if action.parameters == {"precision": "ieee"})
    assert (expected[ieee.id].gain or 1.0) < 0.5
    assert expected[ieee.id].words.endswith("(estimated)")
    assert expected[choice_action(2).id].gain is not None


async def test_of_the_reference_only_choices_are_expected(problem: Problem) -> None:
    """The reference has no schedule to compare with: choices say their time, and no gain over a time that was measured."""
    found = await CODER.options(problem, None, samples.SHEET)
    expected = expectations(problem, None, found, samples.SHEET)
    assert set(expected) == {action.id for action in found if chosen_number(action)}
    assert {each.gain for each in expected.values()} == {None}
    assert choice_of(found[-1], problem, samples.SHEET) is None


RECURRENT = """import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.cells = nn.RNN(4, 4)

    def forward(self, x, h0):
        return self.cells(x, h0)[1]


def get_inputs():
    return [torch.randn(40, 2, 4), torch.randn(1, 2, 4)]


def get_init_inputs():
    return []
"""


async def test_a_recurrent_layer_is_captured_first_and_not_taken_back(tmp_path: Path) -> None:
    """A layer whose every step is a launch starts as a CUDA graph; from there the planner does not go back to single launches."""
    path = tmp_path / "cells.py"
    path.write_text(RECURRENT)
    cells = load_problem(path)
    first, *_ = options = await CODER.options(cells, None, samples.SHEET)
    assert first == choice_action(1)
    assert "replayed as a CUDA graph" in expectations(cells, None, options, samples.SHEET)[first.id].words
    candidate = await made(cells, first)
    assert "@replayed" in candidate.source
    left = await CODER.options(cells, candidate, samples.SHEET)
    expected = expectations(cells, candidate, left, samples.SHEET)
    back = next(action for action in left if action.parameters == {"capture": "none"})
    assert (expected[back.id].gain or 1.0) < 0.7
    plans = await BuiltinPlanner().plan(samples.briefing(options=left, expected=expected, parent=candidate.id), 3)
    assert back not in [plan.action for plan in plans]
