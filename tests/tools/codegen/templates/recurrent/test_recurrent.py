"""LSTM, GRU and RNN give what PyTorch's layers give, by a launch for each wave of steps."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.tools.codegen.harness import made_once, problem_of, run_worker, traced_text, unseen, write_job
from tests.tools.codegen.recurrent_samples import BOTH, LSTM, SAMPLES, layers_text
from tools.codegen import emit, initial_schedule
from tools.codegen.ir.expr import LoweringError
from tools.codegen.ir.operators.families import RECURRENT
from tools.codegen.ir.schedule import Schedule
from tools.codegen.schedule.plan import plan_region
from tools.cost.rank_schedules import modelled_choices
from tools.hardware import load_sheet
from tools.records import DEFAULT_POLICY, PrecisionPolicy

ROUNDED = ("lstm_states", "gru_states", "both")
SMALL = {"BLOCK_H": 16, "BLOCK_K": 16, "num_stages": 2}
SHEET = load_sheet("h100")


def schedule_of(text: str, **changed: Any) -> Schedule:
    """Generate the layers and leave the rest to the library."""
    graph, regions = traced_text(text)[1], []
    for region in initial_schedule(graph).regions:
        generated = region
        if graph.by_name[region.nodes[0]].op in RECURRENT:
            parameters = {**plan_region(graph, region.nodes).defaults(132), **SMALL, **changed}
            generated = region.model_copy(update={"template": "recurrent", "parameters": parameters})
        regions.append(generated)
    return Schedule(regions=tuple(regions))


def source_of(text: str, **changed: Any) -> str:
    """Write a sample."""
    problem, graph = traced_text(text)
    return emit(problem, graph, schedule_of(text, **changed)).source


@pytest.fixture(scope="session")
def results(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """Run all samples at sizes they were not traced at."""
    return made_once(tmp_path_factory, "recurrent", _results)


def _results(folder: Path) -> dict[str, dict[str, Any]]:
    texts = {name: (text, source_of(text)) for name, text in SAMPLES.items()}
    texts["layered"] = LSTM, source_of(LSTM, waves="layered")
    for name in ROUNDED:
        texts[f"{name}_rounded"] = SAMPLES[name], source_of(SAMPLES[name], precision="tf32")
    jobs = [write_job(folder, name, unseen(text.replace("UNITS = 6, 3", "UNITS = 5, 4")), source) for name, (text, source) in texts.items()]
    return dict(zip(texts, run_worker("interpreter_worker.py", jobs, interpret=True), strict=True))


@pytest.mark.slow
@pytest.mark.parametrize("name", [*SAMPLES, "layered"])
def test_each_form_gives_what_its_layers_give(results: Any, name: str) -> None:
    """Cells, states given or not, layouts, directions, halves, layers at once or one after the other: all match float64."""
    found = results[name]
    assert "crash" not in found, found["crash"]
    assert found["error"] <= 1.0


@pytest.mark.slow
@pytest.mark.parametrize("name", ROUNDED)
def test_rounded_operands_are_the_nearest(results: Any, name: str) -> None:
    """What TF32 takes of states and weights is rounded to the nearest before; what is returned is not."""
    found = results[f"{name}_rounded"]
    assert "crash" not in found, found["crash"]
    assert 1.0 < found["error"] <= 200.0


@pytest.mark.slow
def test_recurrent_layers_compile(tmp_path: Path) -> None:
    """Kernels of all cells compile for Hopper."""
    jobs = [
        {**write_job(tmp_path, name, problem_of(SAMPLES[name]), source_of(SAMPLES[name])), "arch": 90}
        for name in ("lstm", "gru", "both", "halves")
    ]
    for result in run_worker("compile_worker.py", jobs, interpret=False):
        assert "crash" not in result, result["crash"]


def test_a_wave_holds_a_step_of_each_layer() -> None:
    """Layers are one step apart, where each goes forwards only; else a layer waits for the whole of the one below."""
    assert "for wave in range(n_steps + n_cells - 1):" in source_of(LSTM)
    assert source_of(BOTH).count("for wave in range(n_steps):") == 2


def test_long_sequences_are_replayed_from_a_graph() -> None:
    """The first choice is captured; operands are rounded as cuDNN does where the policy lets them be."""
    graph = traced_text(LSTM.replace("UNITS = 6, 3, 12, 20", "UNITS = 100, 8, 64, 128"))[1]
    for policy, rounds in ((DEFAULT_POLICY, True), (PrecisionPolicy(name="exact"), False)):
        choices = modelled_choices(graph, SHEET, policy)
        assert choices[0].schedule.captured
        assert choices[0].schedule.regions[0].template == "recurrent"
        used = {region.parameters.get("precision") for choice in choices for region in choice.schedule.regions}
        assert ("tf32" in used) is rounds


@pytest.mark.parametrize(
    ("layers", "reason"),
    [("LSTM(1, proj_size=5)", "projected"), ("GRU(1, dtype=torch.float64)", "float64")],
)
def test_what_is_left_to_the_library_says_why(layers: str, reason: str) -> None:
    """Projected states and dtypes that tensor cores do not multiply have no template."""
    text = layers_text(layers).replace("INPUTS),", "INPUTS).double(),") if "float64" in layers else layers_text(layers)
    graph = traced_text(text)[1]
    node = next(node for node in graph.nodes if node.op in RECURRENT)
    with pytest.raises(LoweringError, match=reason):
        plan_region(graph, (node.name,))
