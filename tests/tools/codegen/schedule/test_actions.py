"""Schedules change by legal actions only, and every legal action leads to a source."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.tools.codegen.compute_samples import DIAGONAL
from tests.tools.codegen.harness import problem_of, run_worker, trace_problem, traced
from tests.tools.codegen.samples import SAMPLES, function
from tools.codegen import IllegalAction, Schedule, apply, emit, initial_schedule, options
from tools.codegen.templates.registry import knobs_of
from tools.cost.rank_schedules import modelled_choices
from tools.hardware import load_sheet
from tools.problems import load_problem
from tools.records import Action, ActionKind

SHEET = load_sheet("h200")
OPERATORS = Path(__file__).parents[4] / "data" / "operators"
CHECKED = ("feed_forward", "channels", "products", "cross_entropy", "strided_softmax", "broadcast", "centred")


@pytest.mark.parametrize("name", CHECKED)
def test_every_option_changes_the_schedule_and_emits_valid_python(name: str) -> None:
    """Each option, on the reference and after the widest fusion, gives another schedule whose source parses."""
    problem, graph = traced(name)
    schedule = initial_schedule(graph)
    first = options(graph, schedule, SHEET)
    schedules = [schedule, apply(graph, schedule, first[0])]
    for parent in schedules:
        for action in options(graph, parent, SHEET):
            changed = apply(graph, parent, action)
            assert changed != parent
            compile(emit(problem, graph, changed).source, name, "exec")


def test_options_are_distinct() -> None:
    """No action is listed twice."""
    _, graph = traced("feed_forward")
    found = options(graph, initial_schedule(graph), SHEET)
    assert len({action.id for action in found}) == len(found) > 3


def test_schedule_survives_json() -> None:
    """A schedule written as JSON and read back is the same schedule."""
    _, graph = traced("feed_forward")
    schedule = initial_schedule(graph)
    schedule = apply(graph, schedule, options(graph, schedule, SHEET)[0])
    assert Schedule.model_validate_json(schedule.model_dump_json()) == schedule


def test_initial_schedule_leaves_everything_to_the_library() -> None:
    """Before any action no region is generated, and together the regions hold every operator once."""
    _, graph = traced("channels")
    regions = initial_schedule(graph).regions
    names = [name for region in regions for name in region.nodes]
    assert not any(region.is_generated for region in regions)
    assert len(names) == len(set(names))


def test_fusing_a_product_with_what_follows_makes_one_region() -> None:
    """A matrix product and the pointwise operators after it become one kernel."""
    _, graph = traced("feed_forward")
    schedule = initial_schedule(graph)
    together = [a for a in options(graph, schedule, SHEET) if a.parameters.get("scope") == "together"]
    fused = apply(graph, schedule, together[0])
    assert len(fused.regions) == len(schedule.regions) - 1
    assert sum(region.template == "matmul" for region in fused.regions) == 1


@pytest.mark.parametrize(
    ("action", "reason"),
    [
        (Action(kind=ActionKind.TILING, region="r9"), "no region r9"),
        (Action(kind=ActionKind.TILING, region="r0", parameters={"ROWS": 2}), "left to the library"),
        (Action(kind=ActionKind.FUSION, region="r0", parameters={"scope": "sideways"}), "each, together or library"),
        (Action(kind=ActionKind.FUSION, region="r0", parameters={"scope": "together"}), "two regions"),
        (Action(kind=ActionKind.ALGORITHM, region="r0", parameters={"implementation": "library"}), "changes nothing"),
    ],
)
def test_illegal_action_says_why(action: Action, reason: str) -> None:
    """An action that does not apply is refused with its reason."""
    _, graph = traced("centred")
    with pytest.raises(IllegalAction, match=reason):
        apply(graph, initial_schedule(graph), action)


def test_a_value_outside_the_knobs_is_refused() -> None:
    """A parameter is refused where its value or its kind is not the template's."""
    _, graph = traced("centred")
    schedule = initial_schedule(graph)
    schedule = apply(graph, schedule, options(graph, schedule, SHEET)[0])
    with pytest.raises(IllegalAction, match="num_warps is one of"):
        apply(graph, schedule, Action(kind=ActionKind.LAUNCH, region="r0", parameters={"num_warps": 3}))
    with pytest.raises(IllegalAction, match="not BLOCK_K"):
        apply(graph, schedule, Action(kind=ActionKind.TILING, region="r0", parameters={"BLOCK_K": 32}))


def test_generated_region_returns_to_the_library() -> None:
    """Taking a region back to the library undoes its generation."""
    _, graph = traced("centred")
    schedule = initial_schedule(graph)
    generated = apply(graph, schedule, options(graph, schedule, SHEET)[0])
    back = Action(kind=ActionKind.ALGORITHM, region="r0", parameters={"implementation": "library"})
    assert apply(graph, generated, back) == schedule


def test_defaults_follow_the_shapes() -> None:
    """Rows that fit are held in registers, long ones walked, or read twice where they are written, few long ones split over programs."""
    softmax, sums = SAMPLES["half_softmax"], function("torch.logsumexp(x, 1)")
    found = []
    for text, rows, cols in ((softmax, 4096, 1024), (sums, 4096, 65536), (softmax, 4096, 65536), (softmax, 2, 1 << 20)):
        graph = trace_problem(problem_of(text.replace("ROWS = 33", f"ROWS = {rows}").replace("COLS = 70", f"COLS = {cols}")))
        schedule = initial_schedule(graph)
        found.append(apply(graph, schedule, options(graph, schedule, SHEET)[0]).regions[0].parameters["algorithm"])
    assert found == ["registers", "online", "l2_two_pass", "split"]


def test_staggered_rows_are_one_a_program_and_written() -> None:
    """Several rows a program, or rows of which only a sum is left, have no `l2_two_pass`, and the error says which rows are."""
    softmax, sums = SAMPLES["half_softmax"], function("torch.logsumexp(x, 1)")
    two_pass = {"algorithm": "l2_two_pass"}
    for text, kind, change in ((softmax, ActionKind.TILING, {"ROWS": 2}), (sums, ActionKind.ALGORITHM, two_pass)):
        graph = trace_problem(problem_of(text.replace("ROWS = 33", "ROWS = 4096").replace("COLS = 70", "COLS = 65536")))
        schedule = initial_schedule(graph)
        schedule = apply(graph, schedule, options(graph, schedule, SHEET)[0])
        offered = {str(action) for action in options(graph, schedule, SHEET)}
        wrong = Action(kind=kind, region="r0", parameters=change)
        assert str(wrong) not in offered
        with pytest.raises(IllegalAction, match="one a program \\(ROWS=1\\)"):
            apply(graph, schedule, wrong)


@pytest.mark.slow
def test_every_knob_has_a_first_value_among_its_values() -> None:
    """What defaults choose for a region is legal."""
    for name in SAMPLES:
        _, graph = traced(name)
        schedule = initial_schedule(graph)
        for region in apply(graph, schedule, options(graph, schedule, SHEET)[0]).regions:
            for key, value in region.parameters.items():
                assert value in knobs_of(region.template)[key].values, (name, key, value)


def test_natural_regions_never_need_each_other() -> None:
    """Two chains that each end with the other's product stay apart, so that the regions have an order."""
    body = "(lambda a, b: (a + b @ x, b + a @ y))(torch.tanh(x), torch.sigmoid(y))"
    graph = trace_problem(problem_of(function(body, "torch.randn(ROWS, ROWS), torch.randn(ROWS, ROWS)", "x, y")))
    regions = [set(region.nodes) for region in initial_schedule(graph).regions]
    assert {"tanh", "add"} in regions or {"sigmoid", "add_1"} in regions
    assert len(regions) == 5


@pytest.mark.parametrize("name", ["row_mean", "rms_norm_residual", "softmax"])
def test_no_option_and_no_choice_writes_a_known_source(name: str) -> None:
    """Neither an option of a generated operator nor a choice of the cost model leads to the same text as its parent or as another."""
    problem = load_problem(OPERATORS / f"{name}.py")
    graph = trace_problem(problem)
    first = initial_schedule(graph)
    parent = apply(graph, first, options(graph, first, SHEET)[0])
    children = [parent, *(apply(graph, parent, action) for action in options(graph, parent, SHEET))]
    chosen = [choice.schedule for choice in modelled_choices(graph, SHEET, problem.policy)]
    for schedules in (children, chosen):
        sources = {emit(problem, graph, schedule).source for schedule in schedules}
        assert len(sources) == len(schedules) > 3


@pytest.mark.slow
def test_options_come_in_one_order_in_every_process() -> None:
    """A resumed run is offered what the first process was, however its sets are ordered."""
    (elsewhere,) = run_worker("options_worker.py", [{"source": DIAGONAL}], interpret=False)
    graph = trace_problem(problem_of(DIAGONAL))
    here = [action.id for action in options(graph, initial_schedule(graph), SHEET)]

    assert elsewhere["hash"] != hash("a word")
    assert len(here) > 2
    assert elsewhere["options"] == here
