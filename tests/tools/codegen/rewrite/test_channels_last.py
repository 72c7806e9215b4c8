"""Library convolutions with their channels last, and the kernels around them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.tools.codegen.compute_samples import CONVOLUTIONS, module
from tests.tools.codegen.harness import made_once, problem_of, run_worker, trace_problem, traced_text, write_job
from tools.codegen import IllegalAction, Schedule, apply, emit, initial_schedule, options
from tools.codegen.schedule.partition import has_convolution
from tools.hardware import load_sheet
from tools.records import Action, ActionKind

FORMATS = ("channels_last", "channels_last_result")


def laid_out(name: str, wanted: str, *, generate: bool) -> tuple[Any, Any, Schedule]:
    """Trace a reference, give its convolutions a layout, and generate what can be."""
    problem, graph = traced_text(CONVOLUTIONS[name])
    schedule = initial_schedule(graph)
    sheet = load_sheet("h200")
    convolutions = "+".join(region.id for region in schedule.regions if has_convolution(graph, region))
    schedule = apply(graph, schedule, Action(kind=ActionKind.LAYOUT, region=convolutions, parameters={"memory_format": wanted}))
    while generate:
        words = ({"scope": "each"}, {"implementation": "generated"})
        free = {region.id for region in schedule.regions if not has_convolution(graph, region)}
        found = [a for a in options(graph, schedule, sheet) if any(w.items() <= a.parameters.items() for w in words)]
        legal = [action for action in found if set(action.region.split("+")) <= free]
        if not legal:
            break
        schedule = apply(graph, schedule, legal[0])
    return problem, graph, schedule


@pytest.fixture(scope="session")
def results(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, str, bool], dict[str, Any]]:
    """Run every reference in every layout, by the library and generated."""
    return made_once(tmp_path_factory, "layouts", _results)


def _results(folder: Path) -> dict[tuple[str, str, bool], dict[str, Any]]:
    keys = [(name, wanted, generate) for name in CONVOLUTIONS for wanted in FORMATS for generate in (False, True)]
    jobs = []
    for name, wanted, generate in keys:
        problem, graph, schedule = laid_out(name, wanted, generate=generate)
        jobs.append(write_job(folder, f"{name}_{wanted}_{generate}", problem, emit(problem, graph, schedule).source))
    return dict(zip(keys, run_worker("interpreter_worker.py", jobs, interpret=True), strict=True))


@pytest.mark.slow
@pytest.mark.parametrize("generate", [False, True])
@pytest.mark.parametrize("wanted", FORMATS)
@pytest.mark.parametrize("name", CONVOLUTIONS)
def test_layout_changes_no_value(results: Any, name: str, wanted: str, generate: bool) -> None:
    """Convolutions with their channels last, and kernels that read them as they lie, give what the reference gives."""
    result = results[name, wanted, generate]
    assert "crash" not in result, result["crash"]
    assert result["error"] <= 1.0


def test_pointwise_results_between_convolutions_keep_the_layout() -> None:
    """Only the first convolution's input is brought to the layout: what lies between two is read and written as it lies."""
    problem, graph, schedule = laid_out("chain", "channels_last", generate=True)
    source = emit(problem, graph, schedule).source
    assert source[source.index("def forward") :].count("channels_last(") == 1
    assert "F.conv_transpose2d(" in source


def test_what_moves_elements_writes_them_as_convolutions_read_them() -> None:
    """Parts laid into one another or side by side, a view of frames between or not, are not brought to the layout by a pass of its own."""
    problem, graph, schedule = laid_out("moved", "channels_last", generate=True)
    source = emit(problem, graph, schedule).source
    assert "F.conv2d(" in source
    assert "channels_last(" not in source[source.index("def forward") :]


def test_a_size_that_the_constructor_kept_is_read_off_a_view() -> None:
    """How many frames follow one another no input tells, but the view that forward makes does: the kernel takes it for its shape."""
    problem, graph, schedule = laid_out("moved", "channels_last", generate=True)
    assert "slice_scatter.default(" not in emit(problem, graph, schedule).source


def test_results_keep_the_reference_strides_unless_asked() -> None:
    """Only `channels_last_result` lets what forward returns lie otherwise, and it says so."""
    inside, through = (emit(*laid_out("chain", wanted, generate=True)) for wanted in FORMATS)
    assert not any("other strides" in note for note in inside.notes)
    assert any("other strides" in note for note in through.notes)


def test_a_lone_convolution_has_one_layout_to_choose() -> None:
    """Where both words for channels last would write the same source only one is offered, and the result's strides are told."""
    problem = problem_of(module("self.conv = torch.nn.Conv2d(c, 20, 3)", "return self.conv(x)", "torch.randn(3, 8, 7, 9)"))
    graph = trace_problem(problem)
    schedule = initial_schedule(graph)
    found = [action for action in options(graph, schedule, load_sheet("h200")) if "memory_format" in action.parameters]
    assert [action.parameters["memory_format"] for action in found] == ["channels_last"]
    assert any("other strides" in note for note in emit(problem, graph, apply(graph, schedule, found[0])).notes)


def test_layout_of_a_generated_region_is_refused() -> None:
    """A memory format is for convolutions, the library's or dense ones of ours."""
    _, graph, schedule = laid_out("chain", "channels_last", generate=True)
    region = next(region.id for region in schedule.regions if region.is_generated)
    with pytest.raises(IllegalAction, match="applies to convolutions"):
        apply(graph, schedule, Action(kind=ActionKind.LAYOUT, region=region, parameters={"memory_format": "channels_last"}))


def test_library_convolutions_can_go_back() -> None:
    """The reference's own layout is an option again once another is chosen."""
    _, graph, schedule = laid_out("volume", "channels_last", generate=False)
    back = Action(kind=ActionKind.LAYOUT, region="r0", parameters={"memory_format": "contiguous"})
    assert apply(graph, schedule, back) == initial_schedule(graph)


def test_a_generated_convolution_writes_rows_of_channels_for_the_next() -> None:
    """A dense convolution of ours keeps the layout it was given, and the one after it reads that without a copy."""
    problem, graph, schedule = laid_out("chain", "channels_last", generate=False)
    sheet = load_sheet("h200")
    for action in options(graph, schedule, sheet)[:]:
        if action.parameters.get("implementation") == "generated":
            schedule = apply(graph, schedule, action)
    formats = [region.parameters["memory_format"] for region in schedule.regions if region.template == "convolution"]
    assert formats == ["channels_last", "channels_last"]
    assert "off_m * n_cols + off_n" in emit(problem, graph, schedule).source
