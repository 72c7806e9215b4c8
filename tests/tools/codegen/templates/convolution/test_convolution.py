"""Dense, transposed, pointwise and depthwise convolutions as kernels of our own."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from tests.support.breadth import covering, unlike
from tests.tools.codegen.compute_samples import DIRECT, module, reference
from tests.tools.codegen.harness import made_once, problem_of, run_worker, trace_problem, traced_text, write_job
from tests.tools.codegen.templates.matmul.test_products import WAYS, whole
from tools.codegen import emit, limits
from tools.codegen.schedule.plan import plan_region
from tools.codegen.templates.convolution.launches import PARTS_SHARE
from tools.codegen.templates.depthwise.launches import lane_counts
from tools.cost.launches import region_launches
from tools.hardware import load_sheet

SPLIT = ("dense", "few_channels", "dense_volume", "transposed_strided_dilated", "line_in_groups", "transposed_in_groups")
"""Those that are computed as products of halves, too: channels filled up, rows of the kernel as channels, remainders, groups."""
HALVES = {"precision": "fp16x3", "accumulate": "chunked", "BLOCK_M": 32, "BLOCK_N": 16, "BLOCK_K": 16}
SINGLE = {**HALVES, "precision": "fp16x1", "accumulate": "direct"}
"""As one product of halves."""
TF32 = {"precision": "tf32", "accumulate": "direct", "BLOCK_M": 32, "BLOCK_N": 16, "BLOCK_K": 16}
SPLIT_IN = covering([(name, parts) for name in SPLIT for parts in ("halves", "single")])
IN_HALVES, IN_ONE = ([name for name, parts in SPLIT_IN if parts == way] for way in ("halves", "single"))
WHOLE = unlike(
    DIRECT,
    {
        "depthwise_pairs",
        "depthwise_large",
        "depthwise_transposed_even",
        "depthwise_several",
        "depthwise_transposed_lines",
        "depthwise_transposed_volume",
        "transposed_line",
        "transposed_dilated",
        "single_results_in_groups",
        "dilated",
        "transposed_with_gaps",
        "groups",
        "one_channel",
    },
)
"""Those that are run as they are: the others run no line of the generator which none of these runs."""
SINGLE_ERROR = 250.0
"""Over the relative error of 2e-6 that a test always allows: 2^-11, to which TF32 rounds an operand."""
HARD = {
    # of part of its input, whose last row is the largest
    "view": module(
        "self.conv = torch.nn.Conv2d(3, 20, 3)",
        "return self.conv(x[:, :, 1:, 2:])",
        "torch.randn(1, 3, 12, 15) * torch.where(torch.arange(12) < 11, 1.0, 100.0)[:, None]",
    ),
    "wide_range": module("self.conv = torch.nn.Conv2d(17, 20, 3)", "return self.conv(x)", "torch.randn(3, 17, 7, 9) ** 7 * 1e15"),
    "infinite": module(
        "self.conv = torch.nn.Conv2d(3, 20, 3, padding=1, stride=2)",
        "return self.conv(x)",
        "torch.randn(2, 3, 11, 13).masked_fill(torch.rand(2, 3, 11, 13) < 0.02, torch.inf).masked_fill(torch.rand(13) < 0.1, torch.nan)",
    ),
    # the largest element is the last of an image that two programs share
    "large_at_the_end": module(
        "self.conv = torch.nn.Conv2d(24, 20, 3)",
        "return self.conv(x)",
        "torch.randn(2, 24, 15, 13) * torch.where(torch.arange(24 * 15 * 13) < 24 * 15 * 13 - 1, 1.0, 1e9).view(24, 15, 13)",
    ),
    "channels_last": module("self.conv = torch.nn.Conv2d(20, 7, 3)", "return self.conv(x.permute(0, 3, 1, 2))", "torch.randn(2, 6, 8, 20)"),
    "some_channels": module("self.conv = torch.nn.Conv2d(17, 7, 3)", "return self.conv(x[:, 1::2])", "torch.randn(2, 35, 6, 8)"),
    "full_groups": module("self.conv = torch.nn.Conv2d(32, 6, 3, groups=2)", "return self.conv(x)", "torch.randn(2, 32, 4, 6)"),
    "long_weights": module("self.conv = torch.nn.Conv2d(270, 3, (3, 2))", "return self.conv(x)", "torch.randn(1, 270, 4, 5)"),
    "large_kernel": module("self.conv = torch.nn.Conv2d(16, 3, 9, padding=4)", "return self.conv(x)", "torch.randn(1, 16, 4, 5)"),
    # rows of the kernel as eighty channels, more than a program makes of one stretch; and as forty-eight
    "many_of_a_row": module(
        "self.conv = torch.nn.Conv2d(15, 3, (2, 5), padding=1)", "return self.conv(x)", "torch.randn(2, 15, 4, 7) ** 7 * 1e9"
    ),
    "stretches": module(
        "self.conv = torch.nn.Conv2d(3, 5, 11, stride=4, padding=2)", "return self.conv(x)", "torch.randn(2, 3, 18, 33) ** 7 * 1e9"
    ),
    "zero": module("self.conv = torch.nn.Conv2d(17, 3, 3)", "return self.conv(x)", "torch.zeros(2, 17, 4, 5)"),
    "hard_weights": reference(
        "F.conv2d(x, w)",
        "torch.randn(2, 17, 5, 6), (torch.randn(7, 17, 3, 3) ** 7 * 1e15).masked_fill(torch.rand(7, 17, 3, 3) < 0.002, torch.inf)",
        "x, w",
    ),
    "hard_transposed_weights": reference(
        "F.conv_transpose2d(x, w, stride=2)",
        "torch.randn(2, 17, 5, 6), torch.randn(17, 7, 3, 3) ** 7 * 1e15",
        "x, w",
    ),
    "view_of_weights": reference(
        "F.conv2d(x, w.permute(3, 2, 0, 1))", "torch.randn(2, 17, 5, 6) ** 7 * 1e15, torch.randn(3, 3, 17, 7) ** 7 * 1e-15", "x, w"
    ),
}
"""Inputs and weights that are hard for sums of short products, or for the passes before them."""
SINGLE_HARD = ("wide_range", "infinite", "zero", "many_of_a_row", "hard_weights")
"""Those of them that are computed as one product of halves, too."""


def in_halves(source: str, way: dict[str, Any] = HALVES) -> tuple[Any, str]:
    """Generate a convolution as products of halves."""
    problem, graph, schedule = whole(source)
    region = schedule.regions[0]
    schedule = schedule.replaced(region.model_copy(update={"parameters": {**region.parameters, **way}}))
    return problem, emit(problem, graph, schedule).source


@pytest.fixture(scope="session")
def results(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """Run every convolution, the pointwise ones as products of halves too."""
    return made_once(tmp_path_factory, "convolutions", _results)


def _results(folder: Path) -> dict[str, dict[str, Any]]:
    chosen = {name: (DIRECT[name], None) for name in WHOLE} | {"halves": (DIRECT["pointwise"], WAYS["halves_split"])}
    jobs = []
    for name, (source, way) in chosen.items():
        problem, graph, schedule = whole(source, {**way, "right": "as_is"} if way else None)
        jobs.append(write_job(folder, name, problem, emit(problem, graph, schedule).source))
    jobs += [write_job(folder, f"{name}_halves", *in_halves(DIRECT[name])) for name in IN_HALVES]
    single = {f"{name}_single": in_halves(DIRECT[name], SINGLE) for name in IN_ONE}
    single |= {f"{name}_single": in_halves(HARD[name], SINGLE) for name in SINGLE_HARD}
    single["packed_single"] = in_halves(DIRECT["dense"], {**SINGLE, "weights": "prepacked"})
    single |= {f"{name}_tf32": in_halves(DIRECT["dense"], {**TF32, "weights": name}) for name in ("every_call", "prepacked")}
    jobs += [write_job(folder, name, *made) for name, made in single.items()]
    names = [*chosen, *(f"{name}_halves" for name in IN_HALVES), *single]
    return dict(zip(names, run_worker("interpreter_worker.py", jobs, interpret=True), strict=True))


@pytest.mark.slow
@pytest.mark.parametrize("name", [*WHOLE, "halves", *(f"{name}_halves" for name in IN_HALVES)])
def test_convolution_matches_float64(results: Any, name: str) -> None:
    """A generated convolution is as accurate as the reference at odd sizes, with strides, padding and dilation."""
    assert "crash" not in results[name], results[name]["crash"]
    assert results[name]["error"] <= 1.0


@pytest.mark.slow
@pytest.mark.parametrize("name", [*IN_ONE, *SINGLE_HARD, "packed"])
def test_one_product_of_halves_has_the_digits_of_tf32(results: Any, name: str) -> None:
    """A convolution of single halves is no further from float64 than rounding each operand to TF32, whatever the range of an image."""
    found = results[f"{name}_single"]
    assert "crash" not in found, found["crash"]
    assert found["error"] <= SINGLE_ERROR


@pytest.mark.slow
@pytest.mark.parametrize("weights", ["every_call", "prepacked"])
def test_operands_of_tf32_are_rounded_before_their_products(results: Any, weights: str) -> None:
    """Tensor cores would cut digits off, always towards zero; the interpreter's products have all digits, so that the rounding is seen."""
    found = results[f"{weights}_tf32"]
    assert "crash" not in found, found["crash"]
    assert 2.0 < found["error"] <= SINGLE_ERROR / 2


def test_products_that_are_convolutions_round_both_operands() -> None:
    """A kernel of one element is a product of matrices, and cuDNN rounds it; a product that is none is left to the tensor cores."""
    for name, source in (
        ("pointwise", DIRECT["pointwise"]),
        ("matmul", reference("x @ y", "torch.randn(48, 32), torch.randn(32, 64)", "x, y")),
    ):
        problem, graph, schedule = whole(source)
        region = schedule.regions[0]
        rounded = region.model_copy(update={"parameters": {**region.parameters, "precision": "tf32", "accumulate": "direct"}})
        text = emit(problem, graph, schedule.replaced(rounded)).source
        assert 'input_precision="tf32"' in text
        assert text.count("nearest_tf32(left), nearest_tf32(right)") == (name == "pointwise")


@pytest.mark.slow
def test_halves_meet_the_exact_policy_on_hard_inputs(tmp_path: Path) -> None:
    """Products of halves meet the exact policy's limits where one image holds large and small numbers, and give infinities and NaNs."""
    jobs = [write_job(tmp_path, name, *in_halves(source)) for name, source in HARD.items()]
    for name, result in zip(HARD, run_worker("exact_worker.py", jobs, interpret=True), strict=True):
        assert result.get("share", 9.0) <= 1.0, (name, result)


def test_rows_of_the_kernel_become_channels_where_channels_are_few() -> None:
    """Three channels and a kernel five wide are read as sixteen channels of a kernel one wide; with many channels nothing changes."""
    few = in_halves(module("self.conv = torch.nn.Conv2d(3, 20, 5)", "return self.conv(x)", "torch.randn(2, 3, 11, 13)"))[1]
    many = in_halves(DIRECT["dense"])[1]
    assert re.search(r"image_halves\(\s*x, conv_weight, 5\s*\)", few)
    assert "range(0, 5 * steps)" in few
    assert re.search(r"image_halves\(\s*x, conv_weight\s*\)", many)
    assert "range(0, 15 * steps)" in many


def test_a_step_looks_up_whose_input_lies_inside() -> None:
    """Bits made before the loop say which kernel elements find input; a step of constant channels compares nothing but those."""
    _, text = in_halves(DIRECT["transposed_strided_dilated"])
    loop = text[text.index("    for step in range(") : text.index("    exponent = -tl.load(")]
    assert re.search(r"reach_\w >> ", loop)
    assert not re.search(r"here_\w >= 0|mask_m|mask_n", loop)
    assert "n_channels: tl.constexpr" in text
    large = in_halves(HARD["large_kernel"])[1]
    assert "reach" not in large


def test_one_launch_prepares_a_convolution_of_halves() -> None:
    """The parts of images and weights come from one launch; the model counts an image once, whose second reading comes from the L2."""
    _, text = in_halves(DIRECT["few_channels"])
    assert len(re.findall(r"_kernel\[", text)) == 2
    _, graph, schedule = whole(DIRECT["few_channels"])
    (region,) = schedule.regions
    shapes = region_launches(plan_region(graph, region.nodes), {**region.parameters, **HALVES}, load_sheet("h200"))
    image, weights = 3 * 8 * 31 * 4, 20 * 8 * 3 * 4
    # eight channels by three elements of a row fill 32 channels; every second place is written
    assert [shape.dram_bytes for shape in shapes[1:]] == [weights * (1 + 32 / 24) + image * (1 + 32 / 8 / 2) / PARTS_SHARE]


@pytest.mark.parametrize(
    ("name", "template"),
    [
        ("depthwise", "depthwise"),
        ("one_channel", "depthwise"),
        ("depthwise_turned_lines", "depthwise"),
        ("depthwise_several", "depthwise"),
        ("depthwise_transposed_volume", "depthwise"),
        ("pointwise", "matmul"),
        ("dense", "convolution"),
        ("transposed", "convolution"),
        ("groups", "convolution"),
    ],
)
def test_template_follows_the_kernel_size(name: str, template: str) -> None:
    """A kernel of one element is a product, one channel by itself a window, all others gathered products."""
    assert whole(DIRECT[name])[2].regions[0].template == template


@pytest.mark.parametrize(
    ("name", "walks"),
    [
        ("depthwise", True),
        ("depthwise_far", True),
        ("depthwise_volume", True),
        ("depthwise_transposed_even", True),
        ("depthwise_lines", False),
        ("depthwise_large", False),
        ("depthwise_transposed", False),
    ],
)
def test_a_lane_walks_down_the_input_where_rows_share_it(name: str, walks: bool) -> None:
    """Planes and volumes are walked down and their kernel is held; lines, large kernels and strided transposes are gathered."""
    problem, graph, schedule = whole(DIRECT[name])
    source = emit(problem, graph, schedule).source
    assert ("taps[" in source, "tap = tl.load" in source) == (walks, not walks)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["depthwise", "depthwise_half", "depthwise_pairs"])
def test_neighbouring_lanes_ask_for_neighbouring_elements(tmp_path: Path, name: str) -> None:
    """With strides too, each load of a depthwise convolution is an element a thread along a row, or a pair, and nothing is exchanged.

    A lane loads each element that its rows reach once, and once what its channel has: kernel, bias and scale. The model counts the same.
    """
    problem, graph, schedule = whole(DIRECT[name])
    (region,) = schedule.regions
    schedule = schedule.replaced(region.model_copy(update={"parameters": {"BLOCK_M": 8, "BLOCK_N": 64, "num_warps": 4}}))
    job = {**write_job(tmp_path, "lanes", problem, emit(problem, graph, schedule).source), "arch": 90}
    (result,) = run_worker("compile_worker.py", [job], interpret=False)
    (made,) = result["kernels"]
    assert "sizePerThread = [1], threadsPerWarp = [32]" in made["ttgir"]
    assert ("sizePerThread = [1, 2], threadsPerWarp = [32, 1]" in made["ttgir"]) == (name == "depthwise_pairs")
    assert made["shared"] == 0
    assert "shfl" not in made["ptx"]
    assert ("ld.global.v2" in made["ptx"]) == (name == "depthwise_pairs")
    kernel = plan_region(graph, region.nodes).kernel
    assert kernel.depthwise is not None
    loads, taps, _ = lane_counts(kernel.depthwise, 4, paired=name == "depthwise_pairs")
    assert made["ttgir"].count("tt.load") == loads + taps + len(kernel.builder.loads) - 2


@pytest.mark.slow
def test_convolutions_compile(tmp_path: Path) -> None:
    """Kernels of each template compile for Ampere, Hopper and Blackwell, and a dense one without TF32 for CDNA 3."""
    jobs = []
    cases: list[tuple[str, int | str]] = [
        ("transposed_strided_dilated", 90),
        ("depthwise", 90),
        ("depthwise_turned_lines", 80),
        ("depthwise_volume", 90),
        ("depthwise_transposed", 100),
        ("depthwise_far", "gfx942"),
        ("depthwise_transposed_even_volume", 80),
        ("depthwise_lines", "gfx942"),
        ("pointwise", 80),
        ("dense", 90),
        ("transposed", 80),
        ("few_channels", 100),
        ("groups", 80),
        ("groups", 100),
        ("transposed_in_groups", 90),
        ("dense", "gfx942"),
    ]
    for name, arch in covering(cases):
        problem, graph, schedule = whole(DIRECT[name])
        if arch == "gfx942" and "precision" in schedule.regions[0].parameters:
            (region,) = schedule.regions
            schedule = schedule.replaced(region.model_copy(update={"parameters": {**region.parameters, "precision": "ieee"}}))
        jobs.append({**write_job(tmp_path, f"{name}_{arch}", problem, emit(problem, graph, schedule).source), "arch": arch})
    targets: tuple[int | str, ...] = (80, 90, 100, "gfx942")
    for name, arch in covering([(name, arch) for arch in targets for name in ("few_channels", "transposed_in_groups")]):
        jobs.append({**write_job(tmp_path, f"{name}_halves_{arch}", *in_halves(DIRECT[name])), "arch": arch})
    for result in run_worker("compile_worker.py", jobs, interpret=False):
        assert "crash" not in result, result["crash"]


def test_other_convolutions_are_left_with_their_reason() -> None:
    """Padding that differs at the two ends stays with the library, which says why; groups of one channel or more do not."""
    for name in ("line_in_groups", "depthwise_lines", "depthwise_several"):
        assert not limits(traced_text(DIRECT[name])[1])
    (limit,) = limits(trace_problem(problem_of(DIRECT["depthwise_lines"].replace("Conv1d(c, c, 5,", "Conv1d(c, c, 4,"))))
    assert "more padding at an end than at the other" in limit.reason


def test_what_neighbours_read_again_grows_with_the_dimensions() -> None:
    """A depthwise convolution moves each tensor once; through the L2, tiles of a volume read their neighbours' planes, too."""
    shares = {}
    for name in ("depthwise_lines", "depthwise", "depthwise_several"):
        _, graph, schedule = whole(DIRECT[name])
        (region,) = schedule.regions
        (shape,) = region_launches(plan_region(graph, region.nodes), region.parameters, load_sheet("h200"))
        shares[name] = shape.l2_bytes / shape.dram_bytes
    assert 1 < shares["depthwise_lines"] < shares["depthwise"] + 1 < shares["depthwise_several"]
