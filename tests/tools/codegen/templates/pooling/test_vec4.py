"""Four neighbouring windows of a pooling: what they are made of, where they are offered, and when they are the coder's first values."""

from __future__ import annotations

import itertools

import pytest

from tests.tools.codegen.harness import traced_text
from tests.tools.codegen.samples import function
from tools.codegen import initial_schedule
from tools.codegen.ir.geometry import Window
from tools.codegen.schedule.plan import Planned, plan_region
from tools.codegen.templates.pooling.layout import fits_vec4
from tools.codegen.templates.pooling.vec4 import OWN, blocks_along, places_of
from tools.hardware import load_sheet

VEC4 = {"algorithm": "vec4", "ELEMENTS": 8, "num_warps": 4}


def planned(body: str, inputs: str = "torch.randn(2, 3, 20, 1024)") -> Planned:
    """Lower the only region of a pooling."""
    _, graph = traced_text(function(body, inputs), "sample")
    return plan_region(graph, initial_schedule(graph).regions[0].nodes)


def row(size: int, padding: int, dilation: int) -> Window:
    """Make a window along one dimension."""
    return Window(
        size=(size,), stride=(1,), padding=(padding,), dilation=(dilation,), expr=0, source=0, inside=(0,), kind="max", count_padding=True,
        ceil=False, divisor=0, spatial=(1,),
    )  # fmt: skip


def test_every_window_gets_its_elements_once_and_in_order() -> None:
    """For any size, padding and dilation the blocks bring each of four windows its elements in ascending order, and no block is idle."""
    for size, dilation in itertools.product(range(2, 17), range(1, 7)):
        for padding in range(size // 2 + 1):
            window = row(size, padding, dilation)
            for own in OWN:
                brought = [4 * block + place for block in blocks_along(window) for place in places_of(window, block, own)]
                assert brought == [own + step * dilation - padding for step in range(size)]
            assert all(any(places_of(window, block, own) for own in OWN) for block in blocks_along(window))


@pytest.mark.parametrize(
    "body",
    [
        "F.max_pool1d(x[0], 8, 1, 4, 3)",
        "F.max_pool2d(x, 4, 1, 1)",
        "F.avg_pool2d(x, 3, (2, 1), 1, count_include_pad=False)",
        "F.avg_pool3d(x, 3, (2, 2, 1), 1)",
    ],
)
def test_windows_one_apart_start_as_quads(body: str) -> None:
    """Where windows are one element apart along rows that Triton sees aligned, four neighbours a thread are the first values."""
    assert planned(body).defaults(132) == VEC4


def test_fewer_warps_where_a_full_tile_would_be_idle() -> None:
    """Rows of 1101 results fill five tiles of 256, of one warp each, better than two of 1024."""
    assert planned("F.max_pool2d(x, 4, 1, 1)", "torch.randn(2, 3, 20, 1104)").defaults(132) == {**VEC4, "num_warps": 1}


@pytest.mark.parametrize(
    "body",
    [
        "F.max_pool2d(x, 3, (1, 2), 1)",
        "F.adaptive_avg_pool2d(x, (20, 200))",
        "F.max_pool2d(x, 3, 1, 1, return_indices=True)[1]",
        "F.max_pool2d(x, 17, 1)",
        "F.max_pool2d(x, (3, 1), 1)",
        "F.max_pool2d(x[..., :100], 3, 1)",
        "F.max_pool2d(x[..., ::2], 3, 1)",
    ],
)
def test_other_windows_are_not_made_four_at_a_time(body: str) -> None:
    """Strides along the row, windows of unequal sizes, positions, long windows, short rows and neighbours that lie apart are refused."""
    assert not fits_vec4(planned(body).kernel)


def test_rows_of_odd_length_are_offered_but_do_not_start_so() -> None:
    """Where Triton cannot load four at once, the tuner may try it, and the first values are another algorithm's."""
    odd = planned("F.max_pool2d(x, 3, 1, 1)", "torch.randn(2, 3, 20, 1021)")
    assert odd.fits(VEC4, "algorithm", load_sheet("h200"))
    assert odd.defaults(132)["algorithm"] != "vec4"


def test_a_thread_makes_four_at_least() -> None:
    """Fewer elements a thread than one block are not worth trying."""
    pooling = planned("F.max_pool2d(x, 4, 1, 1)")
    few = [elements for elements in (1, 2, 4, 8, 16) if pooling.fits({**VEC4, "ELEMENTS": elements}, "ELEMENTS", load_sheet("h200"))]
    assert few == [4, 8, 16]
