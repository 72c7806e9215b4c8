"""Weights packed in a step of their own: the same bits as without it, done again when weights change, offered where there are weights."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.breadth import unlike
from tests.tools.codegen.compute_samples import DIRECT, PRODUCTS, module
from tests.tools.codegen.harness import made_once, problem_of, run_worker, trace_problem, traced_text, write_job
from tests.tools.codegen.templates.convolution.test_convolution import HALVES
from tests.tools.codegen.templates.matmul.test_products import TILES, whole
from tools.codegen import LoweringError, Schedule, apply, emit, initial_schedule, options
from tools.codegen.module.cuda_graph import captured
from tools.codegen.schedule.plan import can_generate, plan_region
from tools.codegen.templates.shared.prepack import EVERY_CALL, PREPACKED, WEIGHTS
from tools.cost.launches import region_launches
from tools.cost.prepack import PackingWalk, packed_where_worth
from tools.cost.region_settings import Setting
from tools.hardware import load_sheet
from tools.problems import with_changing_weights
from tools.records import Action, ActionKind

PARTS = {**TILES, "precision": "fp16x3", "accumulate": "chunked"}
LINEAR = module("self.layer = torch.nn.Linear(20, 35)", "return torch.relu(self.layer(x))", "torch.randn(5, 20)")
SHORT_SUM = module("self.layer = torch.nn.Linear(18, 33, bias=False)", "return self.layer(x)", "torch.randn(70, 18)")
LEFT = module("self.weight = torch.nn.Parameter(torch.randn(33, 20))", "return self.weight @ x", "torch.randn(20, 37)")
TWO = module(
    "self.one = torch.nn.Linear(20, 20)\n        self.two = torch.nn.Linear(20, 20)",
    "return self.two(torch.relu(self.one(x)))",
    "torch.randn(5, 20)",
)
DENSE = DIRECT["dense"].replace("torch.randn(3, 17, 9, 11)", "torch.randn(1, 17, 7, 9)")
TRANSPOSED = DIRECT["transposed_in_groups"].replace("torch.randn(2, 36, 3, 4, 3)", "torch.randn(1, 36, 2, 3, 2)")
"""Of fewer places: every change of the weights runs them twice more."""
PROGRAM = {"programs": "data_parallel", "loads": "pointers"}
CASES: dict[str, tuple[str, dict[str, Any]]] = {
    "halves": (LINEAR, {**PARTS, **PROGRAM}),
    "halves_of_the_left": (LEFT, {**PARTS, **PROGRAM}),
    "bfloat16": (LINEAR, {**PARTS, **PROGRAM, "precision": "bf16x6"}),
    "k_major": (
        LEFT.replace("self.weight @ x", "x.t() @ self.weight.t()"),
        {**TILES, **PROGRAM, "precision": "tf32x3", "accumulate": "chunked"},
    ),
    "turned": (
        module("self.weight = torch.nn.Parameter(torch.randn(20, 35))", "return x @ self.weight", "torch.randn(5, 20)"),
        {**TILES, **PROGRAM, "precision": "tf32x3", "accumulate": "chunked", "right": "k_major"},
    ),
    "operand_stationary": (
        SHORT_SUM,
        {**PARTS, "programs": "operand_stationary", "loads": "pointers", "BLOCK_M": 64, "BLOCK_N": 32, "BLOCK_K": 32},
    ),
    "split": (LINEAR, {**PARTS, **PROGRAM, "SPLIT_K": 2}),
    "dense": (DENSE, HALVES),
    "few_channels": (DIRECT["few_channels"], HALVES),
    "in_groups": (DIRECT["line_in_groups"], HALVES),
    "transposed_in_groups": (TRANSPOSED, HALVES),
    "channels_last": (DENSE, {"BLOCK_M": 32, "BLOCK_N": 16, "BLOCK_K": 16}),
}
"""A reference and the parameters of its one region: each way in which weights are written anew for a kernel."""
NOTHING = ("k_major",)
"""Those of them whose kernel reads the weights as they lie."""
ALIKE = {"bfloat16", "split", "dense", "in_groups", "channels_last"}
"""Cases that run no line of the generator which none of the others runs: tried by `make test-all`."""
PACKED = unlike([name for name in CASES if name not in NOTHING], ALIKE)


def both(source: str, parameters: dict[str, Any]) -> tuple[Any, str, str]:
    """Generate a reference as one region, with its weights packed and without."""
    problem, graph, schedule = whole(source)
    (region,) = schedule.regions
    texts = []
    for choice in (PREPACKED, EVERY_CALL):
        changed = region.model_copy(update={"parameters": {**region.parameters, **parameters, WEIGHTS: choice}})
        texts.append(emit(problem, graph, schedule.replaced(changed)).source)
    return problem, texts[0], texts[1]


@pytest.fixture(scope="session")
def results(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """Run every case that packs."""
    return made_once(tmp_path_factory, "packing", _results)


def _results(folder: Path) -> dict[str, dict[str, Any]]:
    jobs = []
    for name in PACKED:
        problem, packing, plain = both(*CASES[name])
        job = write_job(folder, name, problem, packing)
        (folder / f"{name}_plain.py").write_text(plain)
        jobs.append({**job, "plain": str(folder / f"{name}_plain.py")})
    return dict(zip(PACKED, run_worker("packed_worker.py", jobs, interpret=True), strict=True))


@pytest.mark.parametrize("name", PACKED)
@pytest.mark.slow
def test_packed_weights_give_the_same_bits(results: Any, name: str) -> None:
    """A module that packs its weights gives what one without gives, bit by bit, also after they were changed in whatever way."""
    assert "crash" not in results[name], results[name]["crash"]
    assert results[name]["equal"] == [True] * 11


@pytest.mark.parametrize("name", PACKED)
def test_weights_are_packed_once_for_all_calls(results: Any, name: str) -> None:
    """They are packed at the first call, and once more after each change: in place, replaced, in other memory, loaded."""
    assert results[name]["packs"] == [1, 2, 3, 4, 5]
    assert results[name]["state"]


@pytest.mark.parametrize("name", NOTHING)
def test_nothing_is_packed_where_weights_are_read_as_they_lie(name: str) -> None:
    """A kernel that reads weights as they lie has no step of its own."""
    _, packing, plain = both(*CASES[name])
    assert packing == plain


def test_the_step_is_declared() -> None:
    """The emitted module has `pack_weights` and a forward that launches no pass over the weights."""
    _, packing, plain = both(*CASES["halves"])
    forward = packing[packing.index("def linear_relu(") :]
    assert "def pack_weights(self) -> None:" in packing
    assert "pack_weights" not in plain
    assert "halves(layer_weight" not in forward
    assert "halves(x, " in forward


def test_regions_that_are_alike_share_the_function_of_the_step() -> None:
    """Two equal layers have one packing function, called for each."""
    problem, graph = traced_text(TWO)
    regions = []
    for region in initial_schedule(graph).regions:
        planned = plan_region(graph, region.nodes)
        parameters = {**PARTS, **PROGRAM, WEIGHTS: PREPACKED} if planned.template.name == "matmul" else planned.defaults(132)
        regions.append(region.model_copy(update={"template": planned.template.name, "parameters": parameters}))
    text = emit(problem, graph, Schedule(regions=tuple(regions))).source
    assert text.count("_weights(one_weight: torch.Tensor)") == 1
    assert "return [self.one.weight, self.two.weight]" in text
    assert "self.packed_weights[1]" in text


def test_packing_is_offered_for_parameters_alone() -> None:
    """Of a product of two inputs there is nothing to pack; of a layer in halves there is, and it can be taken back."""
    sheet = load_sheet("h200")
    wanted = Action(kind=ActionKind.LAYOUT, region="r0", parameters={WEIGHTS: PREPACKED})
    for source, able in ((LINEAR, True), (PRODUCTS["plain"], False)):
        _, graph, schedule = whole(source, None)
        (region,) = schedule.regions
        schedule = schedule.replaced(region.model_copy(update={"parameters": {**region.parameters, **PARTS, **PROGRAM, "num_warps": 2}}))
        assert (wanted in options(graph, schedule, sheet)) == able
        if able:
            packed = apply(graph, schedule, wanted)
            assert Action(kind=ActionKind.LAYOUT, region="r0", parameters={WEIGHTS: EVERY_CALL}) in options(graph, packed, sheet)


def test_packing_is_not_offered_where_weights_change() -> None:
    """A problem whose parameters change from call to call gets no packing, whatever its schedule says."""
    problem = with_changing_weights(problem_of(LINEAR))
    graph = trace_problem(problem)
    _, _, schedule = whole(LINEAR)
    (region,) = schedule.regions
    packed = schedule.replaced(
        region.model_copy(update={"parameters": {**region.parameters, **PARTS, **PROGRAM, "num_warps": 2, WEIGHTS: PREPACKED}})
    )
    assert not any(
        WEIGHTS in action.parameters and action.parameters[WEIGHTS] == PREPACKED for action in options(graph, schedule, load_sheet("h200"))
    )
    assert "pack_weights" not in emit(problem, graph, packed).source


def test_a_reference_with_such_names_is_not_packed() -> None:
    """A reference whose own module has a `pack_weights` keeps it: emission says why instead of replacing it."""
    source = LINEAR.replace("    def forward", "    def pack_weights(self):\n        return 1\n\n    def forward")
    problem, graph, schedule = whole(source)
    (region,) = schedule.regions
    changed = region.model_copy(update={"parameters": {**region.parameters, **PARTS, **PROGRAM, WEIGHTS: PREPACKED}})
    with pytest.raises(LoweringError, match="pack_weights of its own"):
        emit(problem, graph, schedule.replaced(changed))


def test_the_model_counts_no_pass_over_packed_weights() -> None:
    """Of a packed layer the cost model counts the pass over the input alone, of a packed convolution the weights' share is gone."""
    sheet = load_sheet("h200")
    for name, saved in (("halves", 2.0 * 20 * 35 * 4), ("dense", None), ("operand_stationary", None)):
        source, parameters = CASES[name]
        _, graph, schedule = whole(source)
        (region,) = schedule.regions
        planned = plan_region(graph, region.nodes)
        moved = [
            sum(shape.dram_bytes for shape in region_launches(planned, {**region.parameters, **parameters, WEIGHTS: choice}, sheet)[1:])
            for choice in (EVERY_CALL, PREPACKED)
        ]
        assert moved[0] > moved[1]
        assert saved is None or moved[0] - moved[1] == saved


def test_packing_is_chosen_where_weights_are_the_traffic() -> None:
    """The model packs the weights of a wide layer of few rows, and leaves those of a narrow layer of many rows as they are."""
    sheet = load_sheet("h200")
    for shape, wide, able in (("64, 16384", 16384, True), ("65536, 1024", 1024, False)):
        inner = int(shape.split(", ")[1])
        source = module(f"self.layer = torch.nn.Linear({inner}, {wide})", "return self.layer(x)", f"torch.randn({shape})")
        problem, graph = traced_text(source)
        names = tuple(node.name for node in graph.nodes if can_generate(graph, (node.name,)))
        planned = plan_region(graph, names)
        best = PackingWalk(planned, planned.defaults(sheet.sms), sheet, problem.policy).ranked()[0]
        assert (best.parameters.get(WEIGHTS) == PREPACKED) == able


def test_a_capture_looks_at_the_weights_before_it_replays() -> None:
    """A captured forward that packs has its graphs made anew when weights were packed again."""
    _, packing, plain = both(*CASES["halves"])
    assert "module.refresh_weights()" in captured(packing)
    assert "refresh_weights" not in captured(plain)


def test_a_call_that_gains_little_packs_nothing() -> None:
    """Packing that saves half of a short region is left out where the rest of the call takes a hundred times as long."""
    plain, packing = Setting(10.0, {"BLOCK_M": 64}), Setting(5.0, {"BLOCK_M": 64, WEIGHTS: PREPACKED})
    found = {"r0": [packing, plain]}
    assert packed_where_worth(found, 100.0) == found
    assert packed_where_worth(found, 1000.0) == {"r0": [plain]}
