"""What operators are made of that neither have a rule nor a decomposition of PyTorch's."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from tests.tools.codegen.harness import generated, made_once, run_worker, traced_at_all_sizes, traced_text, unseen, write_job
from tests.tools.codegen.samples import function
from tools.codegen import emit, initial_schedule
from tools.codegen.schedule.plan import can_generate
from tools.codegen.trace.own_forms import FORMS, MOST_EDGES, NoFormError

X = torch.randn(5, 9, 4, generator=torch.Generator().manual_seed(0))
HOLES = torch.where(X > 0.8, torch.nan, X)
HOLES[2, :, 1] = torch.nan
CUBE, GRID = X.reshape(1, 3, 3, 4, 5), torch.rand(1, 2, 3, 4, 3, generator=torch.Generator().manual_seed(1)) * 2.6 - 1.3
INDEX = torch.tensor([0, 3, 3, 1])
CALLS: dict[str, tuple[str, tuple[Any, ...]]] = {
    "kthvalue": ("aten.kthvalue.default", (X, 3, 1)),
    "kthvalue_kept": ("aten.kthvalue.default", (X, 2, -1, True)),
    "median": ("aten.median.dim", (HOLES, 1)),
    "median_of_all": ("aten.median.default", (X,)),
    "nanmedian": ("aten.nanmedian.dim", (HOLES, 1, True)),
    "nanmedian_of_all": ("aten.nanmedian.default", (HOLES,)),
    "prod": ("aten.prod.dim_int", (X, 1, True)),
    "prod_of_all": ("aten.prod.default", (X[0],)),
    "index_reduce": ("aten.index_reduce.default", (X, 1, INDEX, X[:, 2:6] * 2, "mean")),
    "fake_quantize": ("aten.fake_quantize_per_tensor_affine_cachemask.default", (X, 0.03, 4, 0, 31)),
    "fake_quantize_halves": ("aten.fake_quantize_per_tensor_affine_cachemask.default", (X.half(), 0.03, 4, 0, 31)),
    "fake_quantize_doubles": ("aten.fake_quantize_per_tensor_affine_cachemask.default", (X.double(), 0.03, 4, 0, 31)),
    "fake_quantize_tensor": (
        "aten._fake_quantize_per_tensor_affine_cachemask_tensor_qparams.default",
        (X, torch.tensor([0.07]), torch.tensor([2], dtype=torch.int32), torch.tensor([1]), -8, 7),
    ),
    "fake_quantize_off": (
        "aten._fake_quantize_per_tensor_affine_cachemask_tensor_qparams.default",
        (X, torch.tensor([0.07]), torch.tensor([2], dtype=torch.int32), torch.tensor([0]), -8, 7),
    ),
    **{
        f"fake_quantize_channels_{dtype}": (
            "aten.fake_quantize_per_channel_affine_cachemask.default",
            (X.to(dtype), torch.linspace(0.01, 0.3, 9), torch.arange(-4, 5, dtype=torch.int32), 1, -8, 7),
        )
        for dtype in (torch.float32, torch.float16, torch.bfloat16, torch.float64)
    },
    "fake_quantize_holes_in_channels": (
        "aten.fake_quantize_per_channel_affine_cachemask.default",
        (HOLES, torch.linspace(0.01, 0.3, 9), torch.arange(9, dtype=torch.int32), 1, 0, 15),
    ),
    "fake_quantize_holes": ("aten.fake_quantize_per_tensor_affine_cachemask.default", (HOLES, 0.03, 4, 0, 31)),
    **{f"linspace_{steps}": ("aten.linspace.default", (-1, 2.5, steps)) for steps in (0, 1, 2, 7)},
    "addbmm": ("aten.addbmm.default", (X[0, :, :2], X.mT.reshape(5, 9, 4), X[:, :4, :2])),
    **{
        f"grid_{mode}{padding}{corners}": ("aten.grid_sampler_3d.default", (CUBE, GRID, mode, padding, corners))
        for mode in (0, 1)
        for padding in (0, 1)
        for corners in (False, True)
    },
}
SAMPLES = {
    "medians": function("(x - x.median(1, keepdim=True)[0], x.kthvalue(4, 0)[0], torch.nanmedian(x.log(), 1)[0])"),
    "products": function("(x * 0.1 + 1).prod(1, keepdim=True) * x"),
    "places_in_rows": function(
        "torch.searchsorted(x.sigmoid().cumsum(1)[:, :20], y.abs() * 9) * 2", "torch.randn(ROWS, COLS), torch.randn(ROWS, 7)", "x, y"
    ),
    "largest_by_index": function(
        "x.index_reduce(0, i, y, 'amax')", "torch.randn(ROWS, COLS), torch.randint(0, 5, (40,)), torch.randn(40, COLS)", "x, i, y"
    ),
    "grid_of_numbers": function(
        "torch.fake_quantize_per_tensor_affine(x, y, torch.ones((), dtype=torch.int32, device=x.device), -8, 7) * 2",
        "torch.randn(ROWS, COLS), torch.tensor(0.3)",
        "x, y",
    ),
    "grids_of_channels": function(
        "torch.fake_quantize_per_channel_affine(torch.where(x > 1, float('nan'), x), (y.abs() + 0.1).float(), z, 1, -8, 7) * 2",
        "torch.randn(ROWS, COLS), torch.randn(COLS), torch.randint(0, 8, (COLS,), dtype=torch.int32)",
        "x, y, z",
    ),
    "grids_of_last_channels": function(
        "torch.fake_quantize_per_channel_affine(x, (y.abs() + 0.1).float(), z, 0, 0, 15) @ x.T",
        "torch.randn(ROWS, COLS), torch.randn(ROWS), torch.randint(0, 16, (ROWS,), dtype=torch.int32)",
        "x, y, z",
    ),
    "volumes": function(
        "F.grid_sample(x, y * 2 - 1, align_corners=False) * 2", "torch.randn(ROWS, 2, 3, 4, 5), torch.rand(ROWS, 2, 2, 3, 3)", "x, y"
    ),
}

COORDINATES = """import torch

BATCH, HEIGHT, WIDTH = 2, 6, 5
SMALL_SIZES = [{"HEIGHT": 4, "WIDTH": 7}, {"HEIGHT": 3, "WIDTH": 2}]


def with_places(x):
    rows = torch.linspace(-1, 1, x.shape[2], device=x.device)
    columns = torch.linspace(0, 3, x.shape[3], device=x.device)
    places = torch.stack(torch.meshgrid(rows, columns, indexing="ij")).expand(x.shape[0], -1, -1, -1)
    return torch.cat([x, places], 1) * 2


def example_inputs():
    return (torch.randn(BATCH, 3, HEIGHT, WIDTH),)
"""


def _same(found: Any, wanted: Any) -> bool:
    """Whether values are the same; of several results the second are places, which may be of other elements that are equal."""
    if isinstance(wanted, torch.Tensor):
        return torch.allclose(found, wanted, atol=1e-5, equal_nan=True)
    return torch.allclose(found[0], wanted[0], equal_nan=True) and found[1].shape == wanted[1].shape


@pytest.mark.parametrize("name", CALLS)
def test_a_form_gives_what_the_operator_gives(name: str) -> None:
    """With elements that are no numbers, and positions outside of what is sampled."""
    operator, args = CALLS[name]
    packet, overload = operator.split(".")[1:]
    assert _same(FORMS[operator](*args), getattr(getattr(torch.ops.aten, packet), overload)(*args))


def test_what_no_whole_number_holds_wraps_around_with_a_channels_zero_point() -> None:
    """As the library gives it on a GPU (an H200, PyTorch 2.11), for zero points of nothing, one and minus two."""
    outside = torch.tensor([[torch.nan, torch.inf, -torch.inf, 1e30, -1e30]]).repeat(3, 1)
    scale, zero = torch.tensor([1.0, 0.1, 3.0]), torch.tensor([0, 1, -2], dtype=torch.int32)
    values, kept = FORMS["aten.fake_quantize_per_channel_affine_cachemask.default"](outside, scale, zero, 0, -8, 7)
    wanted = torch.tensor([[-8.0, 7.0, -8.0, 7.0, -8.0], [-0.9] * 5, [27.0] * 5])
    assert torch.allclose(values, wanted)
    assert not kept.any()


def test_a_zero_point_that_is_no_whole_number_has_no_form() -> None:
    """The library rounds it together with what it is added to."""
    with pytest.raises(NoFormError):
        FORMS["aten.fake_quantize_per_channel_affine_cachemask.default"](X, torch.ones(9), torch.full((9,), 0.5), 1, -8, 7)


@pytest.mark.parametrize("right", [False, True])
def test_a_search_compares_with_all_edges(right: bool) -> None:
    """Each row has its own; what equals some, and what is no number, has the place that a search by halves gives it."""
    edges = (X[0].T * 4).round().contiguous().sort(-1).values.contiguous()
    wanted = torch.cat([(X[1].T * 4).round(), torch.full((4, 1), torch.nan)], 1)
    found = FORMS["aten.searchsorted.Tensor"](edges, wanted, right=right)
    assert torch.equal(found, torch.searchsorted(edges, wanted, right=right))
    with pytest.raises(NoFormError):
        FORMS["aten.searchsorted.Tensor"](torch.arange(MOST_EDGES + 1), torch.arange(3))


@pytest.fixture(scope="session")
def results(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """Run every sample in one process, at sizes that no trace of it saw."""
    return made_once(tmp_path_factory, "own_forms", _results)


def _results(folder: Path) -> dict[str, dict[str, Any]]:
    jobs = []
    for name, source in SAMPLES.items():
        problem, graph = traced_at_all_sizes(source, name)
        small = unseen(source.replace("ROWS = 33", "ROWS = 5"), name)
        jobs.append(write_job(folder, name, small, emit(problem, graph, generated(graph, {})).source))
    return dict(zip(SAMPLES, run_worker("interpreter_worker.py", jobs, interpret=True), strict=True))


@pytest.mark.parametrize("name", SAMPLES)
def test_kernels_hold_what_operators_are_made_of(results: Any, name: str) -> None:
    """Nothing is left to the library, and what kernels give is right."""
    graph = traced_at_all_sizes(SAMPLES[name], name)[1]
    assert all(can_generate(graph, region.nodes) for region in initial_schedule(graph).regions)
    assert results[name].get("crash", "") == ""
    assert results[name]["error"] <= 1


def test_one_position_of_a_row_is_where_it_starts(tmp_path: Path) -> None:
    """A row of one pixel, a column of one, and one pixel alone have coordinates, though no trace saw a size of one."""
    problem, graph = traced_text(COORDINATES)
    source, jobs = emit(problem, graph, generated(graph, {})).source, []
    for height, width in ((1, 5), (6, 1), (1, 1), (9, 4)):
        other = unseen(COORDINATES.replace("2, 6, 5", f"2, {height}, {width}"))
        jobs.append(write_job(tmp_path, f"of_{height}_{width}", other, source))
    assert all(result.get("error", 2.0) <= 1 for result in run_worker("interpreter_worker.py", jobs, interpret=True))
