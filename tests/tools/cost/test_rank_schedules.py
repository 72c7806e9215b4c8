"""The cost model's choices: what it names first, and what it names then."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from time import process_time

import pytest

from tests.support.breadth import covering, unlike
from tests.tools.codegen.harness import trace_problem
from tests.tools.codegen.samples import function
from tools.codegen import OperatorGraph, Region, Schedule, emit, initial_schedule
from tools.codegen.ir.graph import Node, Ref, TensorMeta
from tools.codegen.ir.schedule import EPILOGUE
from tools.codegen.schedule.cudnn_fusion import FUSED
from tools.codegen.schedule.options import options
from tools.codegen.schedule.plan import can_generate, plan_region
from tools.codegen.templates.registry import knobs_of
from tools.codegen.templates.shared.knob import ROUGH
from tools.cost.alternatives import Alternatives
from tools.cost.call_time import counted
from tools.cost.choice import Choice, choice_action, chosen_number, in_order
from tools.cost.estimate import host_us, issuing_us
from tools.cost.launches import modelled, region_us
from tools.cost.library import SUMMED_US, left_us
from tools.cost.rank_schedules import modelled_choices
from tools.cost.schedule_model import ScheduleModel, is_convolution
from tools.hardware import load_sheet
from tools.problems import load_problem
from tools.records import DEFAULT_POLICY, ActionKind, PrecisionPolicy, Problem

SHEET = load_sheet("h200")
EXACT, TF32 = PrecisionPolicy(), PrecisionPolicy(name="tf32")
LARGE = "torch.randn(4096, 4096), torch.randn(4096, 4096)"
CONVOLUTION = "torch.randn(8, 64, 56, 56), torch.randn(128, 64, 3, 3)"
PRODUCT = ("torch.matmul(x, y)", LARGE, "x, y")
CONVOLVED = ("torch.relu(torch.nn.functional.conv2d(x, y))", CONVOLUTION, "x, y")
SMALL_FILTERS = "torch.randn(8, 64, 56, 56), torch.randn(64, 1, 3, 3), torch.randn(64, 64, 3, 3)"
LARGE_FILTERS = "torch.randn(8, 512, 56, 56), torch.randn(512, 512, 3, 3)"
DEPTHWISE_AND_DENSE = "torch.relu(F.conv2d(torch.relu(F.conv2d(x, y, padding=1, groups=64)), z))"


def _repeated(step: str, times: int) -> str:
    """An expression that takes a step again and again."""
    expression = "x"
    for _ in range(times):
        expression = step.format(expression)
    return expression


def _layers(weights: Sequence[str]) -> str:
    """An expression that takes a product with each weight in turn: as no two are one tensor, it is no loop."""
    expression = "x"
    for weight in weights:
        expression = f"torch.tanh({expression} @ {weight})"
    return expression


WEIGHTS = [f"y{place}" for place in range(40)]
PIECES = [f"x{place}" for place in range(17)]


SAMPLES = {
    "product": PRODUCT,
    "convolution": CONVOLVED,
    "product and gelu": ("torch.nn.functional.gelu(x @ y)", LARGE, "x, y"),
    "softmax": ("torch.softmax(x, -1)", "torch.randn(16384, 1024)", "x"),
    "one huge row": ("torch.nn.functional.layer_norm(x, x.shape[1:])", "torch.randn(16, 64, 256, 256)", "x"),
    "chain": ("torch.relu(x) * 2 + 1", "torch.randn(4096, 4096)", "x"),
    "depthwise and dense": (
        DEPTHWISE_AND_DENSE,
        "torch.randn(8, 64, 56, 56), torch.randn(64, 1, 3, 3), torch.randn(64, 64, 3, 3)",
        "x, y, z",
    ),
    "depthwise in halves": (
        "F.conv2d(x, y, padding=3, groups=192)",
        "torch.randn(64, 192, 56, 56, dtype=torch.float16), torch.randn(192, 1, 7, 7, dtype=torch.float16)",
        "x, y",
    ),
    "convolution in halves": (
        "x + torch.tanh(F.conv2d(x, y, padding=1))",
        "torch.randn(32, 128, 80, 80, dtype=torch.float16), torch.randn(128, 128, 3, 3, dtype=torch.float16)",
        "x, y",
    ),
    "groups": ("torch.relu(F.conv2d(x, y, groups=3))", "torch.randn(64, 240, 28, 28), torch.randn(240, 80, 1, 1)", "x, y"),
    "single position": ("torch.relu(F.conv2d(x, y))", "torch.randn(64, 256, 1, 1), torch.randn(16, 256, 1, 1)", "x, y"),
    "deep and small": ("torch.nn.functional.conv2d(x, y, padding=1)", "torch.randn(2, 512, 7, 7), torch.randn(512, 512, 3, 3)", "x, y"),
    "convolution over volumes": ("F.conv3d(x, y)", "torch.randn(1024, 3, 16, 32, 32), torch.randn(16, 3, 4, 4, 4)", "x, y"),
    "transposed over volumes": (
        "F.conv_transpose3d(x, y, stride=2, padding=1)",
        "torch.randn(128, 3, 16, 32, 32), torch.randn(3, 16, 3, 3, 3)",
        "x, y",
    ),
    "pooling": ("torch.nn.functional.max_pool2d(x, 3, 2)", "torch.randn(16, 64, 128, 128)", "x"),
}

POLICIES = (EXACT, DEFAULT_POLICY, TF32)
ALIKE = {(name, policy) for name in SAMPLES for policy in POLICIES[1:] if name not in ("product", "convolution")}
"""What another policy than the exact one changes is how products and convolutions round: the rest is tried by `make test-all`."""
WRITTEN = covering(unlike([(name, policy) for name in SAMPLES for policy in POLICIES], ALIKE))

NETWORKS = {
    "feed-forward in bfloat16": (
        "F.linear(torch.relu(F.linear(x, y)).square(), z)",
        ", ".join(f"torch.randn({rows}, {cols}, dtype=torch.bfloat16)" for rows, cols in ((4096, 3072), (12288, 3072), (3072, 12288))),
        "x, y, z",
    ),
    "many pieces": (f"torch.cat([{', '.join(PIECES)}], 0)", ", ".join(["torch.randn(2048, 2048)"] * len(PIECES)), ", ".join(PIECES)),
    "small matrices": ("torch.bmm(x, y)", "torch.randn(8192, 27, 64).half(), torch.randn(8192, 64, 27).half()", "x, y"),
    "lookup": ("F.embedding(i, w)", "torch.randint(0, 9, (5,)), torch.randn(100000, 512)", "i, w"),
    "small steps": (_layers(WEIGHTS), ", ".join(["torch.randn(64, 64)"] * (1 + len(WEIGHTS))), ", ".join(["x", *WEIGHTS])),
    "large steps": (_repeated("torch.tanh({} @ y)", 20), LARGE, "x, y"),
    "depthwise and pointwise": (
        "torch.relu(F.conv2d(torch.relu(F.conv2d(x, y, padding=1, groups=256)), z))",
        "torch.randn(8, 256, 112, 112), torch.randn(256, 1, 3, 3), torch.randn(512, 256, 1, 1)",
        "x, y, z",
    ),
    "heavy convolutions": (
        _repeated("torch.relu(F.conv2d({}, y, padding=1))", 3),
        LARGE_FILTERS,
        "x, y",
    ),
}


@cache
def read(name: str) -> tuple[Problem, OperatorGraph]:
    """Load and trace a sample; no tensor of its sizes is ever made."""
    with TemporaryDirectory() as scratch:
        file = Path(scratch) / "sample.py"
        file.write_text(function(*{**SAMPLES, **NETWORKS}[name]))
        problem = load_problem(file)
    return problem, trace_problem(problem)


def chosen(name: str, policy: PrecisionPolicy = EXACT) -> tuple[Choice, ...]:
    """The model's choices for a sample, made once whether the policy is named or not."""
    return _chosen(name, policy)


@cache
def _chosen(name: str, policy: PrecisionPolicy) -> tuple[Choice, ...]:
    return modelled_choices(read(name)[1], SHEET, policy)


def words(choice: Choice, name: str) -> list[object]:
    """Values of a parameter in all regions that have it."""
    return [region.parameters[name] for region in choice.schedule.regions if name in region.parameters]


def test_a_large_float32_product_starts_with_halves() -> None:
    """Under the exact policy the first candidate multiplies 4096³ as three products of halves, whose digits are kept."""
    assert words(chosen("product")[0], "precision") == ["fp16x3"]


def test_a_policy_that_rounds_gets_rounded_products() -> None:
    """Under tf32 the first candidate multiplies single halves; another rounds to TF32, from an operand that lies as the units read it."""
    first = chosen("product", TF32)[0]
    assert (words(first, "precision"), words(first, "accumulate")) == (["fp16x1"], ["direct"])
    rounded = next(choice for choice in chosen("product", TF32) if words(choice, "precision") == ["tf32"])
    assert words(rounded, "right") in (["k_major"], ["exchanged"])
    assert words(rounded, "accumulate") == ["direct"]


@pytest.mark.parametrize(("name", "template", "rounds"), [("product", "matmul", False), ("convolution", "convolution", True)])
def test_under_pytorchs_own_flags_convolutions_alone_are_rounded(name: str, template: str, rounds: bool) -> None:
    """Under the default policy TF32's digits are an option of a convolution and are chosen, and are neither for a product."""
    own = [choice for choice in chosen(name, DEFAULT_POLICY) if template in [r.template for r in choice.schedule.regions]]
    found = options(read(name)[1], own[0].schedule, SHEET, DEFAULT_POLICY)
    assert any(words(choice, "precision")[0] in ROUGH for choice in own) is rounds
    assert any(a.parameters.get("precision") in ROUGH for a in found) is rounds


@pytest.mark.parametrize("name", SAMPLES)
@pytest.mark.slow
def test_the_exact_policy_never_rounds(name: str) -> None:
    """No choice under the exact policy rounds operands, and split products of TF32 add in chunks."""
    for choice in chosen(name):
        assert ROUGH.isdisjoint(words(choice, "precision"))
        assert all(r.parameters["accumulate"] == "chunked" for r in choice.schedule.regions if r.parameters.get("precision") == "tf32x3")


def test_options_offer_rounding_where_the_policy_does() -> None:
    """`precision=tf32` is an option under the tf32 policy, or with a tolerance that covers it, and under no other."""
    graph = read("product")[1]
    for policy, offered in (
        (EXACT, False),
        (TF32, True),
        (PrecisionPolicy(tolerance=1e-2), True),
        (PrecisionPolicy(tolerance=1e-5), False),
    ):
        found = options(graph, chosen("product")[0].schedule, SHEET, policy)
        assert any(a.parameters.get("precision") == "tf32" for a in found) is offered


@pytest.mark.parametrize(("name", "policy"), WRITTEN, ids=str)
def test_every_choice_can_be_written(name: str, policy: PrecisionPolicy) -> None:
    """Each choice is a schedule of which the coder emits a source that parses, and no two are the same, whatever the policy."""
    problem, graph = read(name)
    found = chosen(name, policy)
    assert len({choice.schedule.model_dump_json() for choice in found}) == len(found) >= 2
    for choice in found:
        ast.parse(emit(problem, graph, choice.schedule).source)


@pytest.mark.parametrize("name", SAMPLES)
def test_every_choice_can_be_reached_by_options(name: str) -> None:
    """A choice holds legal values only, and those that the coder thinks can run."""
    graph = read(name)[1]
    for choice in chosen(name):
        for region in choice.schedule.regions:
            for knob, value in region.parameters.items():
                # a fusion with the library's scope leaves it, and nothing sets it by itself
                assert value in ((FUSED,) if knob == EPILOGUE else knobs_of(region.template)[knob].values)
            if region.template == "matmul":
                assert plan_region(graph, region.nodes).fits(region.parameters, "BLOCK_M", SHEET)


@pytest.mark.parametrize("name", SAMPLES)
def test_the_first_choice_is_no_slower_than_the_coders_own_start(name: str) -> None:
    """By the model's own time, with its doubt: what is named first takes no longer than the rules' first values, all generated."""
    graph = read(name)[1]
    doubt = ScheduleModel(graph, SHEET, EXACT).doubt
    able = [region for region in initial_schedule(graph).regions if can_generate(graph, region.nodes)]
    planned = [(plan_region(graph, region.nodes), doubt(region)) for region in able]
    start = sum(factor * (region_us(each, each.defaults(SHEET.sms), SHEET) or 0.0) for each, factor in planned)
    assert chosen(name)[0].order_us <= start * 1.001


@pytest.mark.slow
def test_a_launch_bound_chain_is_captured_first() -> None:
    """Forty small products are captured in the first choice, at less than the host needs to launch its kernels one by one."""
    first = chosen("small steps")[0]
    assert first.schedule.captured
    assert first.us < issuing_us(*counted(read("small steps")[1], first.schedule))


def test_long_kernels_are_not_captured() -> None:
    """Where the device has work for much longer than the host takes to launch it, no choice is captured."""
    assert not any(choice.schedule.captured for choice in chosen("large steps"))


@pytest.mark.parametrize(("name", "is_first"), [("large steps", True), ("small steps", False)])
def test_a_capture_that_costs_next_to_nothing_comes_first(name: str, *, is_first: bool) -> None:
    """Where launching takes two thirds of the device's time by the model, a slower host may wait for it; 41 inputs are copied."""
    graph = read(name)[1]
    model, schedule = ScheduleModel(graph, SHEET, EXACT), next(one.schedule for one in chosen(name) if one.schedule.regions)
    schedule = schedule.model_copy(update={"captured": False})
    device_us = 1.5 * issuing_us(*counted(graph, schedule, model.kernels(schedule)))
    us = model.call_us(schedule, device_us)
    choice = Choice(schedule, us, order_us=us, device_us=device_us)
    captured = next(one for one in Alternatives(model).of([choice]) if one.schedule.captured)
    assert captured.us > choice.us
    assert (captured.order_us < choice.order_us) is is_first


def test_a_recurrent_network_is_captured_though_nothing_is_generated() -> None:
    """A layer of 300 steps is launch-bound: its only choice is the reference's own call as a graph."""
    x = TensorMeta(((300,), (2,), (4,)), "float32")
    node = Node("lstm", "aten.lstm.input", (Ref("x"), [Ref("x"), Ref("x")], [], True, 3, 0.0, True, False, False), {}, (x,))
    graph = OperatorGraph(("x",), {}, {"x": x}, (node,), Ref("lstm"), traces=1)
    (choice,) = modelled_choices(graph, SHEET, EXACT)
    assert choice.schedule.captured
    assert choice.us < host_us(900, SHEET)
    assert not any(region.is_generated for region in choice.schedule.regions)


@pytest.mark.slow
def test_a_network_mixes_its_own_convolutions_with_the_librarys() -> None:
    """A depthwise convolution, which the library does slowly, is generated; a dense one that may use tensor cores is left to cuDNN."""
    choice = chosen("depthwise and pointwise", TF32)[0]
    templates = {name: region.template for region in choice.schedule.regions for name in region.nodes if name.startswith("conv2d")}
    assert templates == {"conv2d": "depthwise", "conv2d_1": "library"}


def test_a_dense_float32_convolution_starts_with_halves() -> None:
    """Under the exact policy, where cuDNN has no tensor cores, the first candidate sums products of halves."""
    assert words(chosen("depthwise and dense")[0], "precision") == ["fp16x3"]


def test_a_depthwise_convolution_in_halves_is_generated() -> None:
    """PyTorch's took 1390 µs on an H100; halves bring no tensor cores into it."""
    graph = read("depthwise in halves")[1]
    kept = ScheduleModel(graph, load_sheet("h100"), DEFAULT_POLICY).schedule_us(initial_schedule(graph))
    assert kept == pytest.approx(1390, rel=0.1)
    assert [region.template for region in chosen("depthwise in halves", DEFAULT_POLICY)[0].schedule.regions] == ["depthwise"]


def test_convolutions_in_halves_lie_with_their_channels_last() -> None:
    """What stands after one is generated, and brings its result back to the layout of the reference."""
    regions = chosen("convolution in halves", DEFAULT_POLICY)[0].schedule.regions
    assert [region.template for region in regions] == ["library", "tile"]
    assert [region.parameters.get("memory_format") for region in regions] == ["channels_last", None]


def test_a_convolution_in_groups_does_not_round_by_itself() -> None:
    """Where cuDNN may take TF32 it does so without groups; a kernel of ours that rounded was called wrong."""
    for choice in chosen("groups", DEFAULT_POLICY):
        assert not ROUGH & set(words(choice, "precision"))


def test_a_convolution_at_a_single_position_is_a_product() -> None:
    """Its images are rows, so that no convolution of the library's is called for them."""
    assert [region.template for region in chosen("single position", DEFAULT_POLICY)[0].schedule.regions] == ["matmul"]


def test_a_long_sum_takes_the_library_long_however_small_the_images_are() -> None:
    """The products of one element are added up one after the other; ours is first."""
    graph = read("deep and small")[1]
    kept = ScheduleModel(graph, SHEET, EXACT).schedule_us(initial_schedule(graph))
    assert kept is not None
    assert kept >= 512 * 9 * SUMMED_US
    assert chosen("deep and small")[0].us < kept / 2


@pytest.mark.parametrize(("name", "measured_us"), [("convolution over volumes", 10_370), ("transposed over volumes", 10_770)])
def test_few_channels_cost_the_library_as_much_as_many(name: str, measured_us: float) -> None:
    """Convolutions of 3 channels to 16 are modelled within a third of what cuDNN took on an H200, and ours comes first."""
    graph = read(name)[1]
    kept = ScheduleModel(graph, SHEET, EXACT).schedule_us(initial_schedule(graph))
    assert kept == pytest.approx(measured_us, rel=0.33)
    assert [region.template for region in chosen(name)[0].schedule.regions] == ["convolution"]


@pytest.mark.parametrize("name", ["convolution", "depthwise and dense"])
def test_one_of_the_first_two_leaves_all_convolutions_to_the_library(name: str) -> None:
    """And it fuses what stands around them, or has cuDNN do it in the same call."""
    graph = read(name)[1]
    kept = [c for c in chosen(name)[:2] if not any(is_convolution(graph, r) for r in c.schedule.regions if r.is_generated)]
    assert kept
    around = ([region.is_generated or EPILOGUE in region.parameters for region in choice.schedule.regions] for choice in kept)
    assert all(any(each) for each in around)


def test_the_librarys_convolutions_lie_as_they_were_measured_to_be_faster() -> None:
    """With tensor cores they have their channels last where that pays for the copies; in plain float32 nothing says that it would."""
    for policy, expected in ((TF32, "channels_last"), (EXACT, None)):
        able = (c for c in chosen("heavy convolutions", policy) if not any(EPILOGUE in region.parameters for region in c.schedule.regions))
        kept = next(c for c in able if "convolution" not in [r.template for r in c.schedule.regions])
        formats = {region.parameters.get("memory_format") for region in kept.schedule.regions if not region.is_generated}
        assert formats == {expected}


def test_a_product_takes_what_follows_it_into_its_kernel() -> None:
    """The first choice fuses a product's epilogue where that saves a pass over the result."""
    assert [region.template for region in chosen("product and gelu")[0].schedule.regions] == ["matmul"]


def test_a_product_is_generated_for_what_is_fused_to_it() -> None:
    """Of two linear layers of bfloat16 on an H100 that with a squared relu after it is generated, and the plain one left to the library."""
    first = modelled_choices(read("feed-forward in bfloat16")[1], load_sheet("h100"), DEFAULT_POLICY)[0].schedule
    assert [(region.template, len(region.nodes)) for region in first.regions] == [("matmul", 3), ("library", 1)]


def test_the_second_choice_leaves_a_convolution_to_the_library() -> None:
    """Whether ours or the library's convolution is faster is what the model knows least, so both are among the first two."""
    first, second = chosen("convolution")[:2]
    assert {"convolution" in [r.template for r in each.schedule.regions] for each in (first, second)} == {True, False}


def test_choices_are_the_same_again() -> None:
    """The same reference, device and policy give the same choices."""
    graph = read("softmax")[1]
    assert modelled_choices(graph, SHEET, EXACT) == modelled_choices(graph, SHEET, EXACT)


def test_choosing_takes_less_than_a_second() -> None:
    """The largest of the samples is chosen for in less than half a second of processor time; a machine a few times as slow still passes."""
    graph = trace_problem(read("product and gelu")[0])
    begun = process_time()
    modelled_choices(graph, SHEET, EXACT)
    assert process_time() - begun < 3.0


def test_a_template_without_a_model_keeps_the_coders_own_values() -> None:
    """Of a template that the model does not know it names the rules' first values, and says which regions these are."""
    graph = read("product")[1]
    (choice,) = modelled_choices(graph, SHEET, EXACT, known=modelled() - {"matmul"})
    (region,) = choice.schedule.regions
    assert choice.unmodelled == ("r0",)
    assert region.parameters == plan_region(graph, region.nodes).defaults(SHEET.sms)


def test_what_cannot_be_generated_counts_with_its_bytes() -> None:
    """A concatenation of too many pieces takes the time of moving them twice; a lookup moves what it finds, not the table."""
    _, many = read("many pieces")
    (node,) = [node for node in many.nodes if node.op == "cat"]
    assert left_us(many, (node.name,), SHEET) > 2 * len(PIECES) * 2048 * 2048 * 4 / SHEET.memory_gbps / 1e3
    _, table = read("lookup")
    assert left_us(table, ("embedding",), SHEET) == SHEET.launch_us


def test_nothing_is_chosen_where_nothing_is_generated() -> None:
    """A reference that cannot be generated has no choices."""
    graph = read("product")[1]
    assert modelled_choices(replace(graph, blocked=("it writes to an argument",)), SHEET, EXACT) == ()


def test_a_choice_is_an_ordinary_readable_action() -> None:
    """It reads in a trace as what it is, and its number can be read back."""
    action = choice_action(2)
    assert str(action) == "algorithm forward (implementation=modelled, choice=2)"
    assert chosen_number(action) == 2
    assert action.kind is ActionKind.ALGORITHM


def test_other_words_come_before_the_same_ones_again() -> None:
    """Of choices that are about as fast, the second differs from the first in its words."""
    pool = [_named("a", 100.0, "x"), _named("b", 101.0, "x"), _named("c", 110.0, "y"), _named("d", 500.0, "z")]
    assert [choice.us for choice in in_order(pool, 4)] == [100.0, 110.0, 101.0, 500.0]


def _named(name: str, us: float, word: str) -> Choice:
    region = Region(id=name, nodes=("same",), template="rows")
    return Choice(Schedule(regions=(region,)), us, (), (word,), us)


def test_many_small_matrices_are_multiplied_by_a_kernel_of_their_size() -> None:
    """The library gives each of them a tile of its own, which is mostly empty."""
    assert chosen("small matrices")[0].schedule.regions[0].template == "matmul"
