"""A loop that no kernel holds launches the kernels of its body at every step."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.support import breadth
from tests.tools.codegen.harness import made_once, run_worker, small, traced_at_all_sizes, traced_text, unseen, write_job
from tests.tools.codegen.loop_samples import LOOPS
from tests.tools.codegen.stepped_samples import STEPPED
from tools.codegen import IllegalAction, OperatorGraph, Schedule, apply, emit, initial_schedule, options
from tools.codegen.ir.loop import Loop
from tools.codegen.schedule.cuda_graph import can_capture, launches
from tools.cost.rank_schedules import modelled_choices
from tools.hardware import load_sheet
from tools.records import DEFAULT_POLICY, Action, ActionKind, Problem

SHEET = load_sheet("h100")
SOURCES = LOOPS | STEPPED
SETTINGS = ("stepped", "first")
BOTH = list(LOOPS) if breadth.ALL else list(LOOPS)[::3]
"""Loops that one kernel can hold, and that are tried so elsewhere: here some of them."""
CHOSEN = list(STEPPED) if breadth.ALL else ["balanced"]
"""Those whose first choice is run, too: what it writes of a body depends on its operators, which are run one by one."""
CASES = [*((name, "stepped") for name in (*BOTH, *STEPPED)), *((name, "first") for name in CHOSEN)]
"""Loops with the first values of their bodies' regions; those that need it as the cost model likes it best."""


def stepped(graph: OperatorGraph) -> Schedule:
    """Generate the body of every loop, and nothing else."""
    schedule = initial_schedule(graph)
    for region in schedule.regions:
        if any(isinstance(graph.by_name[name], Loop) for name in region.nodes):
            action = Action(kind=ActionKind.ALGORITHM, region=region.id, parameters={"implementation": "steps", "sms": SHEET.sms})
            schedule = apply(graph, schedule, action)
    return schedule


def traced(name: str) -> tuple[Problem, OperatorGraph]:
    """Trace a sample; one that `trace/test_loops.py` traces in this process, too, is traced once for both."""
    return traced_at_all_sizes(LOOPS[name], name) if name in LOOPS else traced_text(STEPPED[name], name)


@cache
def liked_best(name: str) -> Schedule:
    """What the cost model likes best for a sample."""
    problem, graph = traced(name)
    return modelled_choices(graph, SHEET, problem.policy)[0].schedule


def source_of(name: str, setting: str) -> str:
    """Write a sample."""
    problem, graph = traced(name)
    schedule = stepped(graph) if setting == "stepped" else liked_best(name)
    return emit(problem, graph, schedule).source


@pytest.fixture(scope="session")
def results(tmp_path_factory: pytest.TempPathFactory) -> dict[Any, Any]:
    """Run every case at sizes that no trace saw, all in one process."""
    return made_once(tmp_path_factory, "loop_bodies", _results)


def _results(folder: Path) -> dict[Any, Any]:
    jobs = []
    for name, setting in CASES:
        at_small = unseen(small(SOURCES[name]), name)
        jobs.append(write_job(folder, f"{name}_{setting}", at_small, source_of(name, setting)))
    return dict(zip(CASES, run_worker("interpreter_worker.py", jobs, interpret=True), strict=True))


@pytest.mark.slow
@pytest.mark.parametrize(("name", "setting"), CASES)
def test_a_loop_of_kernels_matches_float64(results: Any, name: str, setting: str) -> None:
    """It is as accurate as the reference, within a factor of four."""
    result = results[name, setting]
    assert "crash" not in result, result["crash"]
    assert result["error"] <= 1.0


@pytest.mark.parametrize("name", ["balanced", "gated", "shifted", "counted"])
def test_the_cost_model_has_kernels_for_a_step(name: str) -> None:
    """Its first choice generates regions of the body, and captures the launches of all steps."""
    first = liked_best(name)
    bodies = [region.body for region in first.regions if region.body]
    assert len(bodies) == 1
    assert any(region.is_generated for region in bodies[0])
    assert first.captured


def test_what_a_step_gets_of_its_input_is_made_before_the_loop() -> None:
    """A step of a recurrent layer is one region: the product of what is carried, with all that follows it."""
    first = liked_best("gated")
    (body,) = (region.body for region in first.regions if region.body)
    assert [region.is_generated for region in body] == [True]
    assert sum("linear" in name for region in first.regions for name in region.nodes) >= 1


def test_an_operator_that_is_given_the_step_stays_the_librarys() -> None:
    """A number that is another one at every step is written in the loop, not compiled into a kernel."""
    source = source_of("counted", "stepped")
    assert "(1 + step)" in source
    assert "@triton.jit" in source


def test_actions_reach_into_a_body() -> None:
    """Regions of a body are named behind their loop's, and each action on them gives another schedule that can be written."""
    problem, graph = traced_text(STEPPED["balanced"], "balanced")
    schedule = stepped(graph)
    actions = [action for action in options(graph, schedule, SHEET, DEFAULT_POLICY) if "/" in action.region]
    assert any(action.kind is ActionKind.FUSION for action in actions)
    assert any("num_warps" in action.parameters for action in actions)
    for action in actions:
        changed = apply(graph, schedule, action)
        assert changed != schedule
        compile(emit(problem, graph, changed).source, "balanced", "exec")


def test_a_body_can_be_given_up() -> None:
    """A loop whose step launches kernels can be left to the library again, and has no second body."""
    _, graph = traced_text(STEPPED["balanced"], "balanced")
    schedule = stepped(graph)
    (loop,) = (region for region in schedule.regions if region.body)
    back = Action(kind=ActionKind.ALGORITHM, region=loop.id, parameters={"implementation": "library"})
    assert back in options(graph, schedule, SHEET, DEFAULT_POLICY)
    assert apply(graph, schedule, back) == initial_schedule(graph)
    with pytest.raises(IllegalAction, match="changes nothing"):
        apply(graph, schedule, Action(kind=ActionKind.ALGORITHM, region=loop.id, parameters={"implementation": "steps"}))


def test_a_schedule_with_a_body_survives_json() -> None:
    """Regions of a body are written and read with it, and found by their ids."""
    _, graph = traced_text(STEPPED["balanced"], "balanced")
    schedule = stepped(graph)
    again = Schedule.model_validate_json(schedule.model_dump_json())
    (loop,) = (region for region in again.regions if region.body)
    assert again == schedule
    assert again.region(f"{loop.id}/r0") == loop.body[0]
    assert again.region(f"{loop.id}/r9") is None


def test_the_launches_of_all_steps_are_counted() -> None:
    """Two regions at each of 24 steps are 48 launches, enough to be captured."""
    _, graph = traced_text(STEPPED["balanced"], "balanced")
    before, after = initial_schedule(graph), stepped(graph)
    outside = sum(len(region.nodes) for region in before.regions) - 1
    (loop,) = (region for region in after.regions if region.body)
    assert launches(graph, after) <= outside + 24 * len(loop.body)
    assert launches(graph, after) < launches(graph, before)
    assert can_capture(graph, after)


BACK = """import torch

ROWS = 6
LENGTH = 20
TAGS = 5
SMALL_SIZES = [{"ROWS": 2, "LENGTH": 5, "TAGS": 3}, {"ROWS": 4, "LENGTH": 8, "TAGS": 8}]


def best(x, moves):
    score, back = x[:, 0] * 2, []
    for t in range(1, x.shape[1]):
        score, pointer = (score.unsqueeze(2) + moves).max(dim=1)
        score = score + x[:, t]
        back.append(pointer)
    for pointer in reversed(back):
        score = score.gather(1, pointer)
    return score


def example_inputs():
    return torch.randn(ROWS, LENGTH, TAGS), torch.randn(TAGS, TAGS)
"""


def test_a_loop_of_no_steps_is_refused_in_words(tmp_path: Path) -> None:
    """A single tag has no steps whose pointers could be laid one after the other."""
    problem, graph = traced_text(BACK, "best")
    source = emit(problem, graph, stepped(graph)).source
    jobs = [write_job(tmp_path, f"best_{n}", unseen(BACK.replace("LENGTH = 20", f"LENGTH = {n}"), "best"), source) for n in (1, 2)]
    one, two = run_worker("interpreter_worker.py", jobs, interpret=True)
    assert "AssertionError: no kernel is made for a loop of no steps" in one["crash"]
    assert two["error"] <= 1
