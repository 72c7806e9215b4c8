"""The memory-bound families: every way along a row and every tile of a pooling gives what the reference gives, and compiles."""

from __future__ import annotations

import functools
import re
from pathlib import Path
from typing import Any

import pytest

from tests.support.breadth import covering, unlike
from tests.tools.codegen.harness import (
    for_targets,
    generated,
    made_once,
    problem_of,
    run_worker,
    small,
    trace_problem,
    traced_text,
    unseen,
    write_job,
)
from tests.tools.codegen.memory_samples import MEMORY_SAMPLES
from tests.tools.codegen.samples import function
from tools.codegen import emit, initial_schedule, limits
from tools.codegen.schedule.plan import plan_region
from tools.hardware import load_sheet

ROW = {"ROWS": 1, "BLOCK_N": 16, "SPLITS": 3, "num_warps": 4, "num_stages": 1}


def settings(window: str, **rows: Any) -> dict[str, Any]:
    """Name the parameters of every template."""
    return {
        "pointwise": {"algorithm": "tile", "ELEMENTS": 4, "num_warps": 1},
        "rows": {**ROW, **rows},
        "pooling": {"algorithm": window, "ELEMENTS": 2, "num_warps": 1},
        "matmul": {},
    }


SETTINGS = {
    "blocks": settings("tile", algorithm="online", UNROLL=2),
    "block": settings("flat", algorithm="online", UNROLL=1),
    "levels": settings("tile", algorithm="looped", UNROLL=4),
    "shared": settings("flat", algorithm="split", UNROLL=2),
    "l2_two_pass": settings("flat", algorithm="l2_two_pass", UNROLL=2),
    "whole": settings("tile", algorithm="registers"),
    "pairs": settings("pairs", algorithm="registers"),
    "vec4": settings("vec4", algorithm="registers"),
}
SETTINGS["vec4"]["pooling"]["ELEMENTS"] = 4
SETTINGS["flat"] = {**SETTINGS["whole"], "pointwise": {"algorithm": "flat", "ELEMENTS": 2, "num_warps": 2}}
CHOSEN = {
    "batch_norm": ("blocks", "block", "shared"),
    "in_pieces": ("blocks", "block", "levels", "shared"),
    "one_huge_row": ("blocks", "shared"),
    "reversed_scans": ("levels", "whole", "shared"),
    "each_with_each": ("blocks", "shared"),
    "hinge": ("blocks", "shared"),
    "distances": ("blocks", "shared", "whole"),
    "classes": ("blocks", "shared", "whole"),
    "loss_and_gradient": ("blocks", "block", "levels", "shared", "whole"),
    "pooled_view": ("blocks", "block"),
    "before_pooling": ("blocks", "block"),
    "pairs": ("blocks", "pairs"),
    "vec4": ("blocks", "vec4"),
    "vec4_maxima": ("blocks", "vec4"),
    "adaptive_pooling": ("blocks", "block"),
    "pooled_places": ("blocks", "block"),
    "adaptive_maxima": ("blocks", "block"),
    "triangles": ("blocks", "flat"),
    "triangles_along_rows": ("blocks", "levels", "shared", "whole"),
    "minus_infinity": ("blocks", "block", "shared"),
    "long_norms": ("shared", "l2_two_pass"),
    "fixed_norms": ("shared", "l2_two_pass"),
    "extrema": ("blocks", "block", "levels", "shared"),
}
"""Which ways each sample is run: those that differ for it."""
MAXIMA = {("vec4_maxima", "vec4"), ("vec4_maxima", "blocks")}
ALIKE = {"before_pooling", "hinge", "one_huge_row", "in_pieces"}
"""Samples that run no line of the generator which none of the others runs: tried by `make test-all`."""
CASES = covering([(name, setting) for name in unlike(CHOSEN, ALIKE) for setting in CHOSEN[name]], also=MAXIMA)
TARGETS = (80, 90, 100, "gfx942")
COMPILED = {
    "batch_norm": "blocks",
    "classes": "blocks",
    "before_pooling": "blocks",
    "adaptive_pooling": "blocks",
    "pooled_places": "block",
    "pairs": "pairs",
    "vec4": "vec4",
    "vec4_maxima": "vec4",
    "triangles_along_rows": "shared",
    "long_norms": "l2_two_pass",
    "fixed_norms": "l2_two_pass",
}
"""Samples that are compiled, and their way."""
COMPILED_FOR = covering([(name, target) for name in COMPILED for target in TARGETS], also={("vec4_maxima", 90)})


@functools.cache
def source_of(name: str, way: str) -> str:
    """Emit a sample with a setting."""
    problem, graph = traced_text(MEMORY_SAMPLES[name], name)
    return emit(problem, graph, generated(graph, SETTINGS[way])).source


@pytest.fixture(scope="session")
def judged(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, str], dict[str, Any]]:
    """Run every case in one process."""
    return made_once(tmp_path_factory, "memory_bound", _judged)


def _judged(folder: Path) -> dict[tuple[str, str], dict[str, Any]]:
    jobs = {}
    for name, way in CASES:
        other = unseen(small(MEMORY_SAMPLES[name]), name)
        jobs[name, way] = write_job(folder, f"{name}_{way}", other, source_of(name, way))
    return dict(zip(jobs, run_worker("interpreter_worker.py", list(jobs.values()), interpret=True), strict=True))


@pytest.mark.slow
@pytest.mark.parametrize(("name", "setting"), CASES)
def test_every_schedule_gives_the_references_results(judged: Any, name: str, setting: str) -> None:
    """Outputs, and what a call leaves in buffers, are as accurate as the reference's within a factor of four."""
    result = judged[name, setting]
    assert "crash" not in result, result["crash"]
    assert result["error"] <= 1.0


@pytest.mark.slow
def test_maxima_of_four_neighbours_are_exact(judged: Any) -> None:
    """Padding, odd widths, dilations, rows shorter than a block and NaN: maxima made four at a time are the reference's, bit by bit."""
    assert judged["vec4_maxima", "vec4"] == judged["vec4_maxima", "blocks"] == {"error": 0.0}


@pytest.fixture(scope="session")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, int | str], dict[str, Any]]:
    """Compile a sample of each way along a row."""
    return made_once(tmp_path_factory, "memory_bound_compiled", _compiled)


def _compiled(folder: Path) -> dict[tuple[str, int | str], dict[str, Any]]:
    jobs = {
        name: write_job(folder, name, unseen(small(MEMORY_SAMPLES[name]), name), source_of(name, way)) for name, way in COMPILED.items()
    }
    return for_targets(jobs, COMPILED_FOR)


@pytest.mark.slow
@pytest.mark.parametrize("target", TARGETS)
def test_kernels_compile_for_every_target(compiled: Any, target: int | str) -> None:
    """A kernel of each way along a row compiles for a target, and for each target there are some."""
    for name in (name for name, at in COMPILED_FOR if at == target):
        result = compiled[name, target]
        assert "crash" not in result, (name, result["crash"])
        assert result["kernels"]


@pytest.mark.slow
@pytest.mark.parametrize("target", [at for name, at in COMPILED_FOR if name == "vec4_maxima" and at != "gfx942"])
def test_blocks_of_four_are_one_load(compiled: Any, target: int) -> None:
    """Where the rows' length is a multiple of 16, blocks of four are each a load of 16 bytes, and none goes through shared memory."""
    kernels = {kernel["name"]: kernel for kernel in compiled["vec4_maxima", target]["kernels"]}
    for name, blocks in (("max_pool1d_op_kernel", 7), ("max_pool2d_op_kernel", 4 * 3)):
        ptx, before_store = kernels[name]["ptx"], kernels[name]["ttgir"].split("tt.join")[0]
        assert ptx.count("ld.global") == ptx.count("ld.global.v4") == blocks
        assert not re.search(r"convert_layout.*xf32", before_store)


@pytest.mark.parametrize("way", ["shared", "l2_two_pass"])
def test_sizes_that_are_compiled_in_are_parameters_once(way: str) -> None:
    """Rows of a fixed odd length, which one stage compiles in and another may not, give Python that compiles."""
    source = source_of("fixed_norms", way)
    assert re.search(r"n_\w+: tl.constexpr", source)
    compile(source, "fixed_norms", "exec")


def test_short_pieces_fill_a_step() -> None:
    """Of rows whose pieces are two columns a step takes as many more as a block has room for, and divides by no size of a tensor."""
    source = source_of("fixed_norms", "l2_two_pass")
    assert "UNROLL=32 // block_n" in source
    assert re.search(r"_partial\([^)]*n_cols: tl.constexpr", source)


def test_no_lane_waits_inside_the_loop_of_an_online_softmax() -> None:
    """With several blocks a step, the loop reduces along the blocks only: what crosses threads comes after it."""
    text = source_of("classes", "blocks")
    loop = text[text.index("    for start in range(") : text.index("    row_max = ")]
    assert "tl.max(x, axis=0)" in loop
    assert "tl.arange(0, UNROLL)[:, None] * BLOCK_N" in loop


def test_a_mean_of_losses_by_class_ends_in_one_more_kernel() -> None:
    """Cross entropy is one kernel over the logits and one over what is left, and reads the class's logit by itself."""
    problem = problem_of(MEMORY_SAMPLES["classes"].replace("(F.cross_entropy(x, t), ", "(F.cross_entropy(x, t),) #"))
    graph = trace_problem(problem)
    source = emit(problem, graph, generated(graph, SETTINGS["blocks"])).source
    assert source.count("@triton.jit") == 2
    assert "== t" not in source


LOSSES_OF_CLASSES = {
    "plain": "F.cross_entropy(x, t, reduction='none')",
    "smoothed": "F.cross_entropy(x, t, label_smoothing=0.3, reduction='none')",
    "weighted and smoothed": "F.cross_entropy(x, t, x[0] * 1e-3, label_smoothing=0.3, reduction='none')",
}


@pytest.mark.parametrize("name", LOSSES_OF_CLASSES)
def test_a_loss_by_class_far_from_zero_keeps_its_digits(name: str, tmp_path: Path) -> None:
    """The class's own logit is taken from the maximum first: a sum of exponentials' logarithm near 1,000 has lost what is asked for."""
    inputs = "1000 + torch.randn(ROWS, COLS), torch.randint(COLS, (ROWS,))"
    problem, graph = traced_text(function(LOSSES_OF_CLASSES[name], inputs, "x, t"), "classes_far_from_zero")
    source = emit(problem, graph, generated(graph, SETTINGS["whole"])).source
    (found,) = run_worker("interpreter_worker.py", [write_job(tmp_path, "job", problem, source)], interpret=True)
    assert found["error"] <= 1.0, found


def test_batch_norm_in_training_mode_is_one_region_that_hands_back_its_statistics() -> None:
    """Only what writes to the module's buffers is left to the library."""
    _, graph = traced_text(MEMORY_SAMPLES["batch_norm"], "batch_norm")
    assert {limit.operator for limit in limits(graph)} == {"aten.copy_.default", "aten.add_.Tensor"}
    assert any("relu" in region.nodes for region in initial_schedule(graph).regions if "batch_norm" in region.nodes)


def test_both_variances_of_a_batch_norm_come_from_one_sum_of_squares() -> None:
    """What normalises and what goes into the running statistics divide the same sum, which a row's walk makes once for each norm."""
    source = source_of("batch_norm", "blocks")
    assert len(set(re.findall(r"lane_m2\w*", source))) == len(set(re.findall(r"inverse_std\w*", source)))


def test_welford_takes_each_element_once() -> None:
    """A product that a compiler joins with two sums is rounded in neither: squares of one element, far from zero, were below zero."""
    problem, graph = traced_text(function("F.layer_norm(x * y, (COLS,))", "torch.randn(ROWS, COLS), torch.randn(COLS)", "x, y"), "scaled")
    source = emit(problem, graph, generated(graph, SETTINGS["block"])).source
    walk = source.partition("    for start in ")[2].partition("lane_count")[0]
    assert re.findall(r"^ +(\w+) .*\bmul\b", walk, re.MULTILINE) == ["delta"]


@pytest.mark.parametrize("text", ["torch.softmax(x * 0.3, -1)", "torch.logsumexp(x * 0.3, -1)", "F.layer_norm(x * 0.3, (COLS,))"])
def test_a_product_is_centred_as_it_was_rounded(text: str) -> None:
    """A compiler may join a product with the maximum, or mean, taken from it: the largest of numbers near 2 ** 40 is then not at zero."""
    problem, graph = traced_text(function(text), "scaled")
    source = emit(problem, graph, generated(graph, SETTINGS["whole"])).source
    (centre,) = re.findall(r"tl\.where\(mul == (\w+), ", source)
    assert source.count(f"mul - {centre}") == source.count(f"tl.where(mul == {centre}, {centre} - {centre}, mul - {centre})") == 1


def test_first_values_keep_enough_programs_for_strided_rows() -> None:
    """A mean over the middle dimension starts with at least six programs a multiprocessor."""
    source = "import torch\n\nB = 64\nN = 512\nC = 1024\n\n\ndef sample(x):\n    return x.mean(1)\n\n\n"
    graph = trace_problem(problem_of(source + "def example_inputs():\n    return (torch.randn(B, N, C),)\n"))
    (region,) = initial_schedule(graph).regions
    parameters = plan_region(graph, region.nodes).defaults(132)
    assert 64 * 1024 // int(parameters["ROWS"]) >= 6 * 132


def test_pointwise_operators_before_a_pooling_share_its_kernel() -> None:
    """What stands before and after a pooling is made with it, and padding is not what they make of zero."""
    source = source_of("before_pooling", "blocks")
    assert source.count("_kernel(") >= 6
    assert "tl.where(inside, add_1, 0.0)" in source


def test_a_pooling_with_much_overlap_makes_nothing_again() -> None:
    """A window of 5x5 with a stride of one would make each element 25 times: what stands before it is a kernel of its own."""
    text = MEMORY_SAMPLES["before_pooling"].replace("torch.tanh(x * b + 1), 2)", "torch.tanh(x * b + 1), 5, 1)")
    regions = initial_schedule(trace_problem(problem_of(text))).regions
    assert any(region.nodes == ("mul", "add", "tanh") for region in regions)


def test_windows_two_apart_load_neighbours_together() -> None:
    """Six of seven poolings load each row once and share it out; a mean that leaves its padding out counts element by element."""
    emitted = [part for part in source_of("pairs", "pairs").split("@triton.jit") if "_kernel(" in part]
    assert ["tl.split(" in kernel for kernel in emitted] == [True] * 6 + [False]
    assert [kernel.count("tl.load(") for kernel in emitted] == [1] * 7
    assert [kernel.count("tl.gather(") for kernel in emitted] == [1, 0, 2, 3, 1, 1, 0]


def test_windows_one_apart_load_each_block_once() -> None:
    """All fourteen poolings load blocks of four: as many as four windows touch, from the first one's begin to the last one's end."""
    emitted = [part for name in ("vec4", "vec4_maxima") for part in source_of(name, "vec4").split("@triton.jit") if "_kernel(" in part]
    looked = [part.count(" = quarters(") for part in emitted]
    assert looked == [3, 3, 3, 3, 3, 3, 3, 7, 3, 3, 2, 5, 3, 3]
    assert all("acc = together(acc_0, acc_1, acc_2, acc_3)" in part for part in emitted)


def test_a_maximum_is_found_only_where_somebody_asks() -> None:
    """A pooling whose places nobody reads keeps none, and one whose values nobody reads writes none."""
    emitted = [part for part in source_of("pooled_places", "blocks").split("@triton.jit") if "_kernel(" in part]
    kept = ["best = tl.full(" in kernel for kernel in emitted]
    assert kept == [True, True, True, False, True]
    assert emitted[1].count("tl.store(") == 1


def test_a_triangle_by_itself_is_a_mask_of_positions() -> None:
    """A triangle of a matrix is made with what stands around it, and nothing of it is left to the library."""
    _, graph = traced_text(MEMORY_SAMPLES["triangles_along_rows"], "triangles_along_rows")
    assert not limits(graph)
    assert ("tril", "eq", "masked_fill", "softmax") in {region.nodes for region in initial_schedule(graph).regions}
    assert "cols >= rows_1 + 1" in source_of("triangles", "blocks")


def test_a_literal_that_is_no_number_is_the_same_in_every_trace() -> None:
    """NaN equals nothing, not even itself, and does not count as a number that varies with the sizes."""
    _, graph = traced_text(MEMORY_SAMPLES["pooled_places"], "pooled_places")
    assert not limits(graph)


def test_every_adaptive_mean_is_generated() -> None:
    """Windows of different sizes are no limit."""
    _, graph = traced_text(MEMORY_SAMPLES["adaptive_pooling"], "adaptive_pooling")
    assert not limits(graph)
    assert {region.nodes for region in initial_schedule(graph).regions} >= {("adaptive_avg_pool1d",), ("adaptive_avg_pool3d",)}


@pytest.mark.parametrize("way", ["blocks", "shared"])
def test_what_waits_for_no_reduction_is_written_when_it_is_first_read(way: str) -> None:
    """A loss, its gradient beside it, reads each of its tensors once."""
    source = source_of("loss_and_gradient", way)
    kernels = re.findall(r"@triton\.jit\ndef .*?(?=\n\n\n)", source, flags=re.DOTALL)
    assert len([kernel for kernel in kernels if "tl.load(y_ptr" in kernel]) == 3
    assert all(kernel.count("tl.load(y_ptr") <= 1 for kernel in kernels)


def test_what_is_made_of_a_single_number_costs_an_element_nothing() -> None:
    """A power of one number is made once a program, one of each element 4,000,000 times."""
    work = []
    for body in ("x * y", "x * y ** 2.3", "x ** 2.3 * y"):
        _, graph = traced_text(function(body, "torch.rand(4_000_000), torch.rand(())", "x, y"))
        planned = plan_region(graph, [node.name for node in graph.nodes])
        work += [one.lane_work for one in planned.template.launches(planned.kernel, planned.defaults(132), load_sheet("h200"))]
    assert work[1] < 1.1 * work[0]
    assert work[2] > 10 * work[0]


def test_neighbours_that_lie_apart_are_asked_for_one_by_one() -> None:
    """Gates and values side by side cost a chain more instructions an element than as two tensors, each read four at once."""
    work = []
    for body, inputs in (("x * y", "torch.randn(64, 4096), torch.randn(64, 4096)"), ("x[:, ::2] * x[:, 1::2]", "torch.randn(64, 8192)")):
        _, graph = traced_text(function(body, inputs, "x, y" if "y" in body else "x"))
        planned = plan_region(graph, [node.name for node in graph.nodes if node.op == "mul"])
        work += [one.lane_work for one in planned.template.launches(planned.kernel, planned.defaults(132), load_sheet("h200"))]
    assert work[1] - work[0] == pytest.approx((2 * (4 + 2) - 2 * 4 / 4) * 64 * 4096, rel=0.1)
