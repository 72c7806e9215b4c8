"""Loop nests that read, reduce and write anywhere compute what their references compute, in every way that they are written."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from tests.support.breadth import covering, unlike
from tests.tools.codegen.harness import generated, made_once, run_worker, traced_text, write_job
from tests.tools.codegen.samples import function
from tools.codegen import Schedule, emit, initial_schedule
from tools.codegen.ir.graph import OperatorGraph
from tools.codegen.ir.views import is_view
from tools.codegen.schedule.plan import TILE, plan_region
from tools.codegen.templates.tile.knobs import tile_fits
from tools.records import Problem

SETTINGS: dict[str, dict[str, Any]] = {
    "first": {},
    "flat": {"algorithm": "flat", "BLOCK_N": 16},
    "tile": {"algorithm": "tile", "BLOCK_M": 4, "BLOCK_N": 16},
    "looped": {"reduction": "looped", "BLOCK_K": 16, "BLOCK_M": 2, "BLOCK_N": 4},
    "split": {"reduction": "split", "BLOCK_K": 4, "SPLITS": 8},
    "copies": {"algorithm": "flat", "BLOCK_N": 16, "COPIES": 8},
    "walked": {"algorithm": "tile", "BLOCK_M": 4, "BLOCK_N": 16, "STEPS": 2},
}
"""Parameters that are changed of a region's first ones."""
CHANNELS_LAST = "torch.randint(0, 256, (2, 11, 13, 3), dtype=torch.uint8), torch.rand(1, 3, 7, 9)"
XY, XYZ = "x, y", "x, y, z"
SAMPLES = {
    "transposed": function("x * 2 + x.t()", "torch.randn(37, 37)"),
    "distances": function("(x[:, None] - x[None]).square().sum(-1).sqrt()", "torch.randn(33, 3)"),
    "rotated": function(
        "x * y + torch.cat((-x.chunk(2, -1)[1], x.chunk(2, -1)[0]), -1) * y.sin()", "torch.randn(6, 70), torch.randn(6, 70)", "x, y"
    ),
    "normed_and_rotated": function(
        "torch.cat((-F.rms_norm(x, (20,))[..., 10:], F.rms_norm(x, (20,))[..., :10]), -1)", "torch.randn(3, 7, 20).bfloat16()"
    ),
    "turned_by_position": function(
        "x * y.cos()[:, None] + torch.cat((-x.chunk(2, -1)[1], x.chunk(2, -1)[0]), -1) * y.sin()[:, None]",
        "torch.randn(5, 7, 40), torch.randn(5, 40)",
        XY,
    ),
    "normed_and_turned_by_position": function(
        "F.rms_norm(x, x.shape[-1:]) * y.cos()[:, None] + torch.cat((-x.chunk(2, -1)[1], x.chunk(2, -1)[0]), -1) * y[:, None]",
        "torch.randn(5, 7, 40), torch.randn(5, 40)",
        XY,
    ),
    "halves_turned": function(
        "(lambda a, b: torch.cat((a * y - b * z, a * z + b * y), -1))(*x.chunk(2, -1))",
        "torch.randn(5, 7, 40), torch.randn(7, 20), torch.randn(7, 20)",
        XYZ,
    ),
    "halves_turned_the_other_way": function(
        "(lambda a, b: torch.cat((b * z + a * y, b * y - a * z), -1))(*x.chunk(2, -1))",
        "torch.randn(5, 7, 40), torch.randn(7, 20), torch.randn(7, 20)",
        XYZ,
    ),
    "a_part_turned": function(
        "(lambda a, b: torch.cat((torch.cat((-b.sin() * 2, a.sin() * 3), -1), y), -1))(*x.chunk(2, -1))",
        "torch.randn(5, 7, 40), torch.randn(5, 7, 13)",
        XY,
    ),
    "interleaved": function("torch.stack((x[..., 0::2] - y, x[..., 1::2] * y), -1).flatten(-2)", "torch.randn(6, 70), torch.randn(35)", XY),
    "crossed_twice": function("torch.linalg.cross(x, torch.linalg.cross(x, y))", "torch.randn(9, 5, 3), torch.randn(9, 5, 3)", XY),
    "turned_by_units": function("y + torch.linalg.cross(F.normalize(x, dim=-1)[..., 1:], y)", "torch.randn(70, 4), torch.randn(70, 3)", XY),
    "products_of_fours": function(
        "torch.stack((x[:, 0] * y[:, 1] - x[:, 2], x[:, 3] + y[:, 0], x[:, 1] * x[:, 2], x[:, 0] - y[:, 3]), -1).half()",
        "torch.randn(70, 4), torch.randn(70, 4)",
        XY,
    ),
    "nearest_by_most": function(
        "(*(x[:, None] - y).amax(-1).min(1), (x[:, None] - y).abs().amin(-1).sum(1), x.argmax(1), *x.max(1))",
        "torch.randn(33, 3), torch.randn(20, 3)",
        XY,
    ),
    "made_for_several": function("(y.sin(), x * y.sin()[:, None] + y.cos()[:, None])", "torch.randn(5, 7, 40), torch.randn(5, 40)", XY),
    "rolled_twice": function("x.roll(2, 1).roll(-1, (1,)) + x", "torch.randn(9, 5)"),
    "centred_by_both": function("x.exp().sum(1) * y.exp().amax(1) - z", "torch.randn(9, 37), torch.randn(9, 20), torch.randn(9)", XYZ),
    "rows_by_index": function("x[y] * 2.0", "torch.randn(33, 20), torch.randint(-33, 33, (7, 5))", "x, y"),
    "pairs_by_index": function("x[:, y, z].half()", "torch.randn(5, 9, 8), torch.randint(0, 9, (7,)), torch.randint(0, 8, (7,))", XYZ),
    "elements_of_all_rows": function("x.flatten(1).gather(1, y) * 2", "torch.randn(3, 5, 7), torch.randint(0, 35, (3, 9))", XY),
    "embedded": function("F.embedding(y, x).mean(1)", "torch.randn(33, 20), torch.randint(0, 33, (7, 5))", "x, y"),
    "best_of_each": function("x.gather(1, x.argmax(1, keepdim=True)) * 2", "torch.randn(9, 20)"),
    "added_by_index": function("x.index_add(0, y, z * 2)", "torch.randn(9, 20), torch.randint(0, 9, (33,)), torch.randn(33, 20)", XYZ),
    "first_that_is_no_number": function("x.gather(1, (x - 0.5).sqrt().argmax(1, keepdim=True)) * 2", "torch.rand(9, 20)"),
    "row_by_gathered_matrices": function(
        "torch.einsum('th,tkih->tki', x, y[z]).relu()", "torch.randn(5, 20), torch.randn(6, 7, 20), torch.randint(0, 6, (5, 2))", XYZ
    ),
    "column_by_gathered_matrices": function(
        "torch.bmm(y[z], x[..., None]).squeeze(-1)", "torch.randn(5, 20), torch.randn(6, 7, 20), torch.randint(0, 6, (5,))", XYZ
    ),
    "row_by_a_matrix": function("F.linear(x[0], y, z) * 2", "torch.randn(3, 20), torch.randn(7, 20), torch.randn(7)", XYZ),
    "elements_by_elements": function("torch.einsum('bi,bj->bij', x, y.sin())", "torch.randn(5, 20), torch.randn(5, 7)", XY),
    "among_even_numbers": function("torch.bucketize(x, torch.linspace(-2, 2, 9)) * x + F.one_hot(torch.zeros_like(x[0]).long(), 1).sum()"),
    "accumulated_alike": function("x[:, :1].expand(-1, 7).cumsum(1) * y", "torch.randn(9, 20), torch.randn(9, 7)", XY),
    "bins_by_edges": function(
        "y[torch.bucketize(x.square(), z)]", "torch.randn(9, 20), torch.randn(4, 7), torch.tensor([0.1, 0.5, 2.0])", XYZ
    ),
    "searched_in_a_row_of_any_length": function(
        "torch.searchsorted(y, (x - 0.5).sqrt(), right=True) + torch.bucketize(x, y, out_int32=True)",
        "torch.randn(9, 20), torch.sort(torch.randn(COLS)).values",
        XY,
    ),
    "places_in_a_row": function(
        "torch.searchsorted(y, (x - 0.5).sqrt(), right=True) + torch.searchsorted(y, x)",
        "torch.rand(9, 20), torch.tensor([0.1, 0.5, 0.5, 0.5, 0.6])",
        XY,
    ),
    "bags_of_rows": function(
        "F.embedding_bag(x, y, mode='sum', per_sample_weights=z)",
        "torch.randint(0, 31, (5, 3)), torch.randn(31, 19), torch.rand(5, 3)",
        XYZ,
    ),
    "means_of_bags": function("F.embedding_bag(x, y, mode='mean') * 2", "torch.randint(0, 31, (5, 3)), torch.randn(31, 19)", XY),
    "maxima_of_bags": function("F.embedding_bag(x, y, mode='max')", "torch.randint(0, 31, (5, 3)), torch.randn(31, 19)", XY),
    "alternating": function("x[..., 0::2] * x[..., 1::2].sigmoid() + y", "torch.randn(7, 70).half(), torch.randn(35)", XY),
    "kept_by_distance": function(
        "torch.stack([((x[:, None] - x[None]).square().sum(-1).sqrt() < a).float() for a in (0.5, 1.0, 2.0)]).mean(0).sum(-1)",
        "torch.randn(33, 3)",
    ),
    "mean_of_few_softmaxes": function(
        "torch.softmax(x, 1).mean(1) * y[z]", "torch.randn(9, 3, 20), torch.randn(9, 20), torch.randint(0, 9, (9,))", XYZ
    ),
    "pairs_turned_by_position": function(
        "torch.stack((x[..., 0::2] * y.cos()[:, None] - x[..., 1::2], x[..., 0::2] * y.sin()[:, None]), -1).flatten(-2).half()",
        "torch.randn(5, 7, 80), torch.randn(5, 40)",
        XY,
    ),
    "complex_products": function(
        "torch.view_as_real(torch.view_as_complex(x.reshape(5, 40, 2)) * torch.polar(torch.ones_like(y), y))",
        "torch.randn(5, 80), torch.randn(5, 40)",
        XY,
    ),
    "scattered": function("x.scatter_add(1, y, z)", "torch.randn(9, 20), torch.randint(0, 20, (9, 33)), torch.randn(9, 33)", XYZ),
    "put": function("x.index_put((y,), z)", "torch.randn(40, 6).bfloat16(), torch.randperm(40)[:13], torch.randn(13, 6).bfloat16()", XYZ),
    "copied_to": function("x.index_copy(0, y, z.sin())", "torch.randn(40, 6), torch.randperm(40)[:13], torch.randn(13, 6)", XYZ),
    "counted": function("torch.zeros(16, dtype=x.dtype).scatter_add(0, (x * 16).long(), x)", "torch.rand(1021)"),
    "shuffled": function("F.pixel_shuffle(x, 3) + y", "torch.randn(2, 18, 5, 7).half(), torch.randn(2, 2, 15, 21).half()", "x, y"),
    "bordered": function("F.pad(x, (1, 2, 3, 1), mode='reflect').flip(0) + F.pad(x, (1, 2, 3, 1), value=2.0)", "torch.randn(2, 5, 7)"),
    "enlarged_and_joined": function(
        "F.silu(torch.cat((F.interpolate(x, scale_factor=2.0), y), 1))", "torch.randn(2, 5, 4, 7), torch.randn(2, 3, 8, 14)", XY
    ),
    "taps": function(
        "F.silu(F.conv1d(F.pad(x, (3, 0)), y, z, groups=x.shape[1]))", "torch.randn(2, 9, 20), torch.randn(9, 1, 4), torch.randn(9)", XYZ
    ),
    "taps_of_one_channel": function(
        "F.conv2d(F.pad(x.flatten(0, 1)[:, None], (1, 1, 2, 2), mode='reflect'), y[None, None, :, None])",
        "torch.randn(2, 3, 9, 11), torch.randn(5)",
        XY,
    ),
    "taps_of_joined": function(
        "F.conv1d(torch.cat((x, y), -1), z, groups=x.shape[1])", "torch.randn(2, 9, 3), torch.randn(2, 9, 17), torch.randn(9, 1, 4)", XYZ
    ),
    "taps_of_images": function(
        "F.conv2d(x * 2, y, stride=(2, 1), padding=(1, 2), dilation=(1, 2), groups=x.shape[1])",
        "torch.randn(2, 5, 9, 11).half(), torch.randn(5, 1, 3, 3).half()",
        XY,
    ),
    "patches": function("F.unfold(x, 3, padding=(1, 2), stride=(1, 2)) * 2", "torch.randn(2, 3, 7, 8)"),
    "patches_apart": function("F.unfold(x, (2, 3), dilation=2).amax(1)", "torch.randn(2, 3, 7, 8)"),
    "between": function("F.interpolate(x * 2, (7, 9), mode='bilinear')", "torch.randn(2, 3, 11, 13)"),
    "cubic": function("F.interpolate(x * 2, (7, 30), mode='bicubic')", "torch.randn(2, 3, 11, 13)"),
    "cubic_at_corners": function(
        "F.interpolate(x, scale_factor=1.5, mode='bicubic', align_corners=True)", "torch.randn(2, 3, 5, 6).half()"
    ),
    "between_volumes": function("F.interpolate(x, scale_factor=1.5, mode='trilinear', align_corners=True)", "torch.randn(1, 2, 4, 5, 6)"),
    "nearest_joined": function(
        "F.silu(torch.cat((F.interpolate(x, scale_factor=2.0), y), 1))", "torch.randn(2, 5, 3, 4), torch.randn(2, 3, 6, 8)", XY
    ),
    "nearest": function("F.interpolate(x, scale_factor=2.0).relu() - 1", "torch.randn(2, 3, 5, 7).half()"),
    "nearest_exact": function("F.interpolate(x, 11, mode='nearest-exact')", "torch.randn(2, 3, 17)"),
    "sampled": function(
        "F.grid_sample(x, y * 2 - 1, align_corners=True)", "torch.randn(2, 3, 6, 8), torch.rand(2, 5, 7, 2) * 1.2 - 0.1", XY
    ),
    "sampled_to_the_border": function(
        "F.grid_sample(x, y, padding_mode='border', align_corners=False)", "torch.randn(2, 3, 6, 8), torch.randn(2, 5, 7, 2)", XY
    ),
    "sampled_by_reflection": function(
        "F.grid_sample(x, y * 2, padding_mode='reflection', align_corners=False)", "torch.randn(2, 3, 6, 8), torch.randn(2, 5, 7, 2)", XY
    ),
    "sampled_by_reflection_at_middles": function(
        "F.grid_sample(x, y * 3, padding_mode='reflection', align_corners=True)", "torch.randn(2, 3, 1, 8), torch.randn(2, 5, 7, 2)", XY
    ),
    "sampled_nearest": function(
        "F.grid_sample(x, y, mode='nearest', align_corners=False)", "torch.randn(2, 3, 6, 8), torch.randn(2, 5, 7, 2)", XY
    ),
    "windows": function("x.unfold(1, 4, 1).amax(-1)", "torch.randn(9, 20)"),
    "repeated": function("x.repeat(2, 3) * torch.arange(3 * x.shape[1], device=x.device)", "torch.randn(9, 20)"),
    "replaced": function("x.slice_scatter(y, 1, 2, 12, 2) * 3", "torch.randn(9, 20), torch.randn(9, 5)", "x, y"),
    "two_directions": function("x.sum(0) * x.sum(1)", "torch.randn(37, 37)"),
    "sums_of_rows_and_columns": function(
        "(x.square().sum(1) + y[0], x.square().mean(0).rsqrt())", "torch.randn(33, 20), torch.rand(1)", XY
    ),
    "written_and_summed": function("(x.sin() * 2, (x.sin() * x).sum(1), x.amax(1))", "torch.randn(9, 70)"),
    "shares_of_rows_then_columns": function(
        "(lambda a: a / a.sum(0, keepdim=True))(x.exp() / x.exp().sum(1, keepdim=True))", "torch.randn(33, 20)"
    ),
    "mean_of_rows": function("torch.log_softmax(x, -1).square().mean()", "torch.randn(33, 20)"),
    "centred_by_most": function("(x - x.mean((0, 2), keepdim=True)) * x.amax(1, keepdim=True)", "torch.randn(5, 9, 20)"),
    "centred_scaled_and_summed": function("((x - x.mean(1, keepdim=True)) / x.amax(1, keepdim=True), x.sum(1))", "torch.rand(5, 37)"),
    "best_and_its_share": function("(x.argmax(1), x.log_softmax(1).gather(1, x.argmax(1, keepdim=True)))", "torch.randn(9, 37)"),
    "first_of_equal_ones": function("(x.argmax(1), x.argmin(1), x.min(1)[1])", "torch.randint(-2, 3, (9, 37)).float()"),
    "first_of_columns": function("(x.max(0)[0], x.max(0)[1], x.argmin(0))", "torch.randint(-90, 90, (9, 37)).half()"),
    "least_that_is_no_number": function(
        "(x.argmin(1), x.min(1)[1])", "torch.where(torch.rand(9, 37) > 0.1, torch.randn(9, 37), torch.nan)"
    ),
    "first_of_whole_numbers": function("(x.int().argmin(1), x.long().argmax(1))", "torch.randn(9, 37)"),
    "share_of_the_best": function(
        "(x.argmax(1), x.log_softmax(1).gather(1, (x * y).argmax(1, keepdim=True)))", "torch.randn(9, 37), torch.randn(37)", "x, y"
    ),
    "shares_of_infinite_ones": function("(x * 2).log().logsumexp(1) + x.sum(1)", "torch.randn(9, 37).relu()"),
    "two_shares": function("x.softmax(1) + (x * y).logsumexp(1, keepdim=True)", "torch.randn(9, 37), torch.randn(37)", "x, y"),
    "several_shapes": function("(x.permute(0, 2, 3, 1) * y, x.mean((2, 3)))", "torch.randn(2, 5, 7, 9), torch.randn(2, 7, 9, 5)", "x, y"),
}
"""References whose operators tiles hold together."""
SHARED = tuple((name, "split") for name in ("sums_of_rows_and_columns", "written_and_summed", "shares_of_rows_then_columns"))
ALIKE = {
    "distances",
    "rotated",
    "turned_by_position",
    "halves_turned_the_other_way",
    "interleaved",
    "centred_by_both",
    "rows_by_index",
    "pairs_by_index",
    "embedded",
    "best_of_each",
    "places_in_a_row",
    "alternating",
    "mean_of_few_softmaxes",
    "pairs_turned_by_position",
    "taps_of_joined",
    "cubic",
    "between_volumes",
    "nearest_joined",
    "nearest",
    "sampled",
    "sampled_to_the_border",
    "sampled_by_reflection",
    "centred_scaled_and_summed",
    "best_and_its_share",
    "transposed",
    "crossed_twice",
    "made_for_several",
    "mean_of_rows",
    "products_of_fours",
    "first_of_columns",
    "bins_by_edges",
    "means_of_bags",
    "a_part_turned",
    "two_shares",
    "kept_by_distance",
    "added_by_index",
    "put",
    "several_shapes",
}
"""Samples that run no line of the generator which none of the others runs: tried by `make test-all`."""
CASES = covering([(name, setting) for name in unlike(SAMPLES, ALIKE) for setting in SETTINGS], also=SHARED)


def whole(graph: OperatorGraph, setting: str) -> Schedule:
    """Give everything to one nest, with a setting where it can be written so."""
    names = tuple(node.name for node in graph.nodes if not is_view(node))
    planned = plan_region(graph, names, TILE)
    parameters = planned.defaults(132) | SETTINGS[setting]
    if planned.template.refusal(planned.kernel, parameters):
        parameters = planned.defaults(132)
    first = initial_schedule(graph).regions[0]
    return Schedule(regions=(first.model_copy(update={"id": "r0", "nodes": names, "template": TILE, "parameters": parameters}),))


def written(name: str, setting: str) -> tuple[Problem, str]:
    """Emit a sample as one nest."""
    problem, graph = traced_text(SAMPLES[name], name)
    return problem, emit(problem, graph, whole(graph, setting)).source


@pytest.fixture(scope="session")
def results(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, str], dict[str, Any]]:
    """Run every case in one process."""
    return made_once(tmp_path_factory, "tiles", _results)


def _results(folder: Path) -> dict[tuple[str, str], dict[str, Any]]:
    jobs = [write_job(folder, f"{name}_{setting}", *written(name, setting)) for name, setting in CASES]
    return dict(zip(CASES, run_worker("interpreter_worker.py", jobs, interpret=True), strict=True))


@pytest.mark.parametrize(("name", "setting"), CASES)
def test_a_nest_matches_float64(results: Any, name: str, setting: str) -> None:
    """One kernel for all of a reference, or two where a reduction is split, is as accurate as the reference."""
    result = results[name, setting]
    assert "crash" not in result, result["crash"]
    assert result["error"] <= 1.0


def test_alternating_results_are_made_together() -> None:
    """Both formulas of a pair are made once, and the pair is written as one: nothing asks which of the two an element is."""
    source = written("interleaved", "first")[1]
    assert "tl.join" in source
    assert "tl.where" not in source


def test_halves_that_are_alike_are_one_formula() -> None:
    """Both halves of a rotation read the same tensors: each is read once, at a position that is chosen."""
    source = written("halves_turned", "first")[1]
    assert [source.count(f"tl.load({name}_ptr") for name in "xyz"] == [2, 1, 1]


def test_sums_over_several_axes_are_laid_out_alike() -> None:
    """Axes of which no value has two are one dimension of the tile: nothing is moved between threads to bring values together."""
    source = written("centred_by_both", "first")[1]
    assert "[:, None, None]" not in source
    assert source.count("tl.arange(0, BLOCK_K") == 2


def test_positions_that_go_round_twice_are_one_remainder() -> None:
    """Inside of two cross products each element is one of three, and the first needs no remainder at all."""
    source = written("crossed_twice", "first")[1]
    assert not re.search(r"% 3 \+ \d\) % 3", source)


def test_a_sum_of_coordinates_is_written_out() -> None:
    """Three terms are added where they are needed, and are no dimension of the tile."""
    assert "tl.sum" not in written("distances", "first")[1]


@pytest.mark.slow
def test_nests_compile_for_hopper(tmp_path: Path) -> None:
    """Nests of every kind compile to machine code."""
    every = [("distances", "looped"), ("counted", "flat"), ("mean_of_rows", "split"), ("best_of_each", "tile"), ("transposed", "tile")]
    chosen = covering(every)
    jobs = [{**write_job(tmp_path, f"{name}_{setting}", *written(name, setting)), "arch": 90} for name, setting in chosen]
    for job, result in zip(jobs, run_worker("compile_worker.py", jobs, interpret=False), strict=True):
        assert "crash" not in result, (job["source"], result["crash"])
        assert result["kernels"]


def test_a_concatenation_between_operators_makes_one_region() -> None:
    """A rotation of halves with what is done to them is a natural region, and its kernel reads the halves where they lie."""
    _, graph = traced_text(SAMPLES["normed_and_rotated"], "normed_and_rotated")
    (region,) = initial_schedule(graph).regions
    assert plan_region(graph, region.nodes).template.name == TILE
    assert "slice_1" not in written("normed_and_rotated", "first")[1]


def test_few_neighbours_make_columns_with_the_dimension_before_them() -> None:
    """Triples that are turned lie in columns with what stands before them, and are taken apart there."""
    text = function("torch.stack((x - y, x * y, x), -1)", "torch.randn(6, 5, 70), torch.randn(70)", XY)
    problem, graph = traced_text(text, "paired")
    (region,) = initial_schedule(graph).regions
    planned = plan_region(graph, region.nodes, TILE)
    region = region.model_copy(update={"template": TILE, "parameters": planned.defaults(132)})
    source = emit(problem, graph, Schedule(regions=(region,))).source
    assert "cols // " in source
    assert "rows" in source


def test_rows_that_programs_share_are_written_by_chunks() -> None:
    """Where what is reduced is written along its rows, too, the last kernel is launched for every chunk, as those before it."""
    source = written("centred_scaled_and_summed", "split")[1]
    assert source.count(" * n_splits,)](") == source.count("_kernel[(") == 2


def test_rows_of_one_matrix_among_many_are_read_at_about_one_time() -> None:
    """Where several rows name one large matrix, neighbouring programs have these rows and the same columns."""
    shapes = "torch.randn(16, 1024), torch.randn(16, 4096, 1024).bfloat16(), torch.randint(0, 16, (16, 2))"
    problem, graph = traced_text(function("torch.einsum('th,tkih->tki', x, y[z].float())", shapes, XYZ), "experts")
    names = tuple(node.name for node in graph.nodes if not is_view(node))
    parameters = plan_region(graph, names, TILE).defaults(132) | {"algorithm": "tile", "reduction": "looped", "BLOCK_M": 4, "BLOCK_N": 4}
    first = initial_schedule(graph).regions[0]
    region = first.model_copy(update={"id": "r0", "nodes": names, "template": TILE, "parameters": parameters})
    assert "pid_m = pid % tiles_m" in emit(problem, graph, Schedule(regions=(region,))).source


def test_a_position_in_several_dimensions_is_not_taken_apart() -> None:
    """An element of rows that lie behind one another is read at its number: no quotient, no remainder."""
    source = written("elements_of_all_rows", "first")[1]
    assert "//" not in source.split("tl.load(y_ptr")[1].split("tl.store")[0]
    assert " % " not in source.split("tl.load(y_ptr")[1].split("tl.store")[0]


def test_sums_of_rows_and_of_columns_take_one_pass() -> None:
    """A program writes the sums of its rows while it adds up columns; the last kernel reads partial sums of columns alone, a part each."""
    source = written("sums_of_rows_and_columns", "split")[1]
    assert source.count("tl.load(x_ptr") == 1
    assert source.count("_kernel[(") == 2
    assert "cdiv(n_k0, part)" in source


def test_what_waits_for_no_sum_is_written_in_its_walk() -> None:
    """Where an element's formula does not need the sums of its row, the row is walked once."""
    assert written("written_and_summed", "looped")[1].count("for start in") == 1


def test_a_matrix_and_its_transpose_are_read_apart() -> None:
    """A square matrix added to its transpose is read twice, once along each of its dimensions."""
    source = written("transposed", "tile")[1]
    assert source.count("tl.load(x_ptr") == 2


def test_interpolation_is_one_kernel_with_what_stands_around_it() -> None:
    """Nothing of another size is written: each element of the result reads the four around its position, and converts them."""
    text = function("F.interpolate(x.permute(0, 3, 1, 2).float() / 255, y.shape[2:], mode='bilinear') - y", CHANNELS_LAST, "x, y")
    _, graph = traced_text(text, "preprocessed")
    (region,) = initial_schedule(graph).regions
    assert plan_region(graph, region.nodes).template.name == TILE


def test_a_border_is_made_once_a_row() -> None:
    """What replaces the last column is read and made for each row, and not for each element, of which one keeps it."""
    made = "torch.select_scatter(x * 2, (x[..., -2].sin() + y[..., -2]) / (1 + y[..., -2].exp()), -1, -1)"
    problem, graph = traced_text(function(made, "torch.randn(512, 1024), torch.randn(512, 1024)", XY), "bordered_by_rows")
    (region,) = initial_schedule(graph).regions
    planned = plan_region(graph, region.nodes, TILE)
    region = region.model_copy(update={"template": TILE, "parameters": planned.defaults(132)})
    source = emit(problem, graph, Schedule(regions=(region,))).source
    (line,) = (line for line in source.splitlines() if "tl.load(y_ptr" in line)
    assert "mask_n" not in line


def test_a_mean_is_not_made_for_all_rows_that_it_is_one_of() -> None:
    """One of six rows of means is made by itself, and put among the others by another kernel."""
    text = function("torch.select_scatter(y, (x * 2).mean((1, 2)), 0, 3)", "torch.randn(16, 64, 64), torch.randn(6, 16)", XY)
    _, graph = traced_text(text, "kept_means")
    assert len(initial_schedule(graph).regions) == 2


def test_a_join_at_a_fixed_position_is_the_piece_that_lies_there() -> None:
    """A grid made by `stack` and read at its first and second element asks nothing at run time."""
    text = function(
        "F.grid_sample(x, torch.stack((y, y * 2), -1), align_corners=False)", "torch.randn(2, 3, 6, 8), torch.rand(2, 5, 7)", XY
    )
    problem, graph = traced_text(text, "joined")
    (region,) = initial_schedule(graph).regions
    planned = plan_region(graph, region.nodes)
    region = region.model_copy(update={"template": TILE, "parameters": planned.defaults(132)})
    assert not re.search(r"tl.where\(\d", emit(problem, graph, Schedule(regions=(region,))).source)


def test_what_a_reduction_makes_is_not_made_again_for_each_neighbour() -> None:
    """A softmax over rows that are then enlarged is a kernel by itself."""
    _, graph = traced_text(function("F.interpolate(torch.softmax(x, -1), (7, 30), mode='bilinear')", "torch.randn(2, 3, 5, 20)"), "apart")
    assert len(initial_schedule(graph).regions) == 2


def test_a_row_is_searched_in_steps_as_wide_as_if_its_result_had_no_columns() -> None:
    """What is picked by the largest element of a row has columns; the row that is searched has none, and a tile may hold all of it."""
    _, graph = traced_text(function("y[x.argmax(1)] * 2", "torch.randn(64, 512), torch.randn(512, 64)", XY), "picked")
    (region,) = (each for each in initial_schedule(graph).regions if "argmax" in each.nodes)
    planned = plan_region(graph, region.nodes, TILE)
    first = planned.defaults(132)
    assert (first["reduction"], first["BLOCK_N"]) == ("registers", 64)
    assert tile_fits(planned.kernel, {**first, "BLOCK_M": 4}, "BLOCK_M")


@pytest.mark.parametrize(("rows", "told"), [(37, True), (48, False)])
def test_neighbours_of_odd_rows_are_read_together(rows: int, told: bool) -> None:
    """Four lie side by side in each of 37 rows: that all are a multiple of 16 is what Triton knows by itself, of four it is told."""
    text = function("torch.relu(x[i] + y[i])", f"torch.randn(9, 4), torch.randint(0, 9, ({rows},)), torch.randn(9, 4)", "x, i, y")
    problem, graph = traced_text(text)
    assert ("tl.max_constancy(" in emit(problem, graph, generated(graph, {})).source) is told


def test_a_slice_of_all_is_no_call() -> None:
    """`x[:, None]` is traced with a slice from the first row to the last: the view alone is left."""
    text = function("torch.relu(x[:, None] + 1) * 2", "torch.randn(9, 4)", "x")
    _, graph = traced_text(text)
    assert not any(node.op == "slice" for node in graph.nodes)
