"""The built-in coder and the mixed one, on a real problem."""

from __future__ import annotations

import ast

import pytest

from agents.coder.builtin import BuiltinCoder
from agents.coder.llm import LLMCoder
from agents.coder.mixed import MixedCoder
from agents.coder.protocol import CodingTask, Draft, Refusal
from agents.samples import case as samples
from agents.samples.sources import KERNEL, REFERENCE
from tests.agents.conftest import Ask, Serve
from tests.support.scripted_rules import Rule
from tools.problems import load_problem
from tools.records import ROOT, Action, ActionKind, Candidate, Problem, Verdict

CODER = BuiltinCoder()
GOOD = f"```python\n{KERNEL}```"


@pytest.fixture(scope="module")
def problem(tmp_path_factory: pytest.TempPathFactory) -> Problem:
    """softmax(2 x), read from a file as a user gives it."""
    path = tmp_path_factory.mktemp("problem") / "softmax.py"
    path.write_text(REFERENCE)
    return load_problem(path)


async def some_options(problem: Problem, parent: Candidate | None = None) -> tuple[Action, ...]:
    """The coder's options on a parent."""
    return await CODER.options(problem, parent, samples.SHEET)


def task(problem: Problem, action: Action, parent: Candidate | None = None) -> CodingTask:
    """A task on the real problem."""
    return samples.task(parent, action).model_copy(update={"problem": problem})


def made(problem: Problem, draft: Draft, action: Action) -> Candidate:
    """The candidate that a draft becomes."""
    return Candidate(problem=problem.id, parent=ROOT, action=action, source=draft.source, schedule=draft.schedule, coder="builtin")


async def test_writes_what_an_option_says(problem: Problem) -> None:
    """Every option on the reference leads to a source with ModelNew and a schedule that offers options again."""
    for action in await some_options(problem):
        draft = await CODER.write(task(problem, action))
        assert isinstance(draft, Draft), draft
        assert "ModelNew" in {n.name for n in ast.parse(draft.source).body if isinstance(n, ast.ClassDef)}
        assert await some_options(problem, made(problem, draft, action))


async def test_same_task_same_source(problem: Problem) -> None:
    """The source follows from the schedule: writing it again gives the same text, from another coder too."""
    action = (await some_options(problem))[0]
    assert await CODER.write(task(problem, action)) == await BuiltinCoder().write(task(problem, action))


async def test_illegal_action_is_refused(problem: Problem) -> None:
    """An action on a region that does not exist is refused, and the refusal names it."""
    result = await CODER.write(task(problem, Action(kind=ActionKind.TILING, region="r99", parameters={"BLOCK": 8})))
    assert isinstance(result, Refusal)
    assert "tiling r99" in result.reason


async def test_free_text_is_refused(problem: Problem) -> None:
    """A parent without a schedule has no options and is not changed."""
    parent = samples.candidate()
    assert await some_options(problem, parent) == ()
    result = await CODER.write(task(problem, samples.FUSION, parent))
    assert isinstance(result, Refusal)
    assert "free text" in result.reason


async def test_wrong_results_are_not_guessed_at(problem: Problem) -> None:
    """A wrong result is never mended by trying things."""
    action = (await some_options(problem))[0]
    draft = await CODER.write(task(problem, action))
    assert isinstance(draft, Draft)
    result = await CODER.repair(task(problem, action), draft, samples.failed(Verdict.WRONG), 1)
    assert isinstance(result, Refusal)
    assert "does not mend WRONG by guessing" in result.reason


async def grown(problem: Problem) -> tuple[Candidate, Action]:
    """A candidate of the built-in coder, and an option on it with a number that could be smaller."""
    action = (await some_options(problem))[0]
    draft = await CODER.write(task(problem, action))
    assert isinstance(draft, Draft)
    parent = made(problem, draft, action)
    found = await some_options(problem, parent)
    knobs = [o for o in found if "implementation" not in o.parameters]
    numbers = [o for o in knobs if any(isinstance(v, int) and not isinstance(v, bool) for v in o.parameters.values())]
    largest = max(numbers, key=lambda o: max(v for v in o.parameters.values() if isinstance(v, int)))
    return parent, largest


async def test_smaller_parameter_is_tried_and_said(problem: Problem) -> None:
    """What did not build is tried with the next smaller legal parameters, and the draft says so; when none is left it is refused."""
    parent, action = await grown(problem)
    draft = await CODER.write(task(problem, action, parent))
    assert isinstance(draft, Draft)
    failed = samples.failed(Verdict.BUILD_FAILED)
    smaller = await CODER.repair(task(problem, action, parent), draft, failed, 1)
    assert isinstance(smaller, Draft)
    assert smaller.source != draft.source
    assert f"{action} ended BUILD_FAILED" in smaller.notes[-1]
    assert isinstance(await CODER.repair(task(problem, action, parent), draft, failed, 99), Refusal)


async def test_mixed_coder_pays_only_for_what_is_not_listed(problem: Problem, serve: Serve, model: Ask) -> None:
    """A listed action is written by construction without a call; another one by the model."""
    server = serve(Rule(role="coder", answer=GOOD))
    coder = MixedCoder(model(server), CODER)
    action = (await coder.options(problem, None, samples.SHEET))[0]
    by_construction = await coder.write(task(problem, action))
    assert isinstance(by_construction, Draft)
    assert by_construction.schedule is not None
    assert server.count() == 0
    by_model = await coder.write(task(problem, Action(kind=ActionKind.VECTORISATION, region="Model", parameters={"width": 4})))
    assert isinstance(by_model, Draft)
    assert by_model.schedule is None
    assert server.count() == 1


async def test_mixed_coder_lets_the_model_mend(problem: Problem, serve: Serve, model: Ask) -> None:
    """What the built-in coder does not mend the model does, and the draft says who and why."""
    server = serve(Rule(role="repairer", answer=GOOD))
    coder = MixedCoder(model(server), CODER)
    action = (await coder.options(problem, None, samples.SHEET))[0]
    draft = await coder.write(task(problem, action))
    assert isinstance(draft, Draft)
    mended = await coder.repair(task(problem, action), draft, samples.failed(Verdict.WRONG), 1)
    assert isinstance(mended, Draft)
    assert mended.source == KERNEL
    assert "does not mend WRONG by guessing" in mended.notes[-1]


async def test_model_starts_from_a_working_source(problem: Problem, serve: Serve, model: Ask) -> None:
    """On the reference the LLM coder is shown a working source that the built-in coder made of it."""
    server = serve(Rule(role="coder", answer=GOOD))
    await LLMCoder(model(server), CODER).write(task(problem, samples.TILING[0]))
    start = await CODER.start(problem)
    assert isinstance(start, Draft)
    assert start.source.strip() in server.last_user()
