"""What the cost model makes of products whose programs hold a tile of one operand, and of short sums without that."""

from __future__ import annotations

import pytest

from tests.tools.cost.test_region_settings import SHEET, planned
from tools.codegen.schedule.plan import Planned
from tools.codegen.templates.matmul.launches import matmul_launches
from tools.codegen.templates.matmul.layout import matmul_layout_of
from tools.codegen.templates.matmul.legality import OPERAND_STATIONARY, stationary_settings
from tools.codegen.templates.registry import knobs_of
from tools.codegen.templates.shared.knob import Parameters
from tools.cost.launches import region_us
from tools.cost.region_settings import modelled_names
from tools.cost.walk import Walk
from tools.records import PrecisionPolicy

MEASURED: dict[str, tuple[str, str, float]] = {
    "64": ("torch.matmul(x, y)", "torch.zeros(32768, 64), torch.zeros(64, 32768)", 1695),
    "32": ("torch.matmul(x, y)", "torch.zeros(32768, 32), torch.zeros(32, 32768)", 1462),
    "large images": ("torch.nn.functional.conv2d(x, y)", "torch.zeros(16, 64, 1024, 1024), torch.zeros(128, 64, 1, 1)", 4977),
    "images": ("torch.nn.functional.conv2d(x, y)", "torch.zeros(10, 112, 224, 224), torch.zeros(672, 112, 1, 1)", 1110),
    "small images": ("torch.nn.functional.conv2d(x, y)", "torch.zeros(64, 128, 56, 56), torch.zeros(512, 128, 1, 1)", 339),
}
"""Products, and microseconds of a prototype on an NVIDIA H200 (2026-11-21) with its fastest tile, 64 by 128."""


def lowered(name: str) -> Planned:
    """Lower one of them."""
    body, inputs, _ = MEASURED[name]
    return planned(body, inputs, "x, y")


def first(one: Planned) -> Parameters:
    """The setting of `operand_stationary` that is tried first."""
    return {**one.defaults(SHEET.sms), **stationary_settings(matmul_layout_of(one.kernel))[0]}


@pytest.mark.parametrize("name", MEASURED)
def test_operand_stationary_products_are_modelled_as_measured(name: str) -> None:
    """The fastest tile is modelled within a fifth of what the prototype took, its pass over the smaller operand included."""
    one = lowered(name)
    assert region_us(one, first(one), SHEET) == pytest.approx(MEASURED[name][2], rel=0.2)


@pytest.mark.parametrize("name", MEASURED)
def test_operand_stationary_products_come_first_of_short_sums(name: str) -> None:
    """Of all settings that are looked at the fastest holds an operand, and the fastest that does not is slower by the model."""
    one = lowered(name)
    found = Walk(one, one.defaults(SHEET.sms), modelled_names(knobs_of("matmul")), SHEET, PrecisionPolicy()).ranked()
    assert found[0].parameters["programs"] == OPERAND_STATIONARY
    assert found[0].us < min(each.us for each in found if each.parameters["programs"] != OPERAND_STATIONARY)


def test_what_is_held_moves_once() -> None:
    """The kernel moves each tensor once; the L2 gives held tiles once, walked parts once a held tile, and takes the result once."""
    one = planned("torch.matmul(x, y)", "torch.zeros(4096, 64), torch.zeros(64, 65536)", "x, y")
    kernel, passed = matmul_launches(one.kernel, first(one), SHEET)
    left, right, result = 4096 * 64 * 4, 64 * 65536 * 4, 4096 * 65536 * 4
    shares = kernel.programs // (65536 // 128)
    assert kernel.dram_bytes == left + right + result
    assert kernel.l2_bytes == shares * right + 65536 // 128 * left + result
    assert kernel.steps * shares >= 4096 // 64
    assert passed.dram_bytes == 2 * left


def test_vectors_that_are_filled_up_are_written_twice() -> None:
    """Sums of 60 elements have two more passes over what is walked where that lies along the sum, none where it lies across."""
    along, across = (
        planned(f"torch.matmul({x}, y)", "torch.zeros(512, 60), torch.zeros(60, 8192)".replace("512, 60", size), "x, y")
        for x, size in (("x", "512, 60"), ("x.T", "60, 512"))
    )
    assert [len(matmul_launches(one.kernel, first(one), SHEET)) for one in (along, across)] == [4, 2]


def test_the_left_operand_is_held_where_it_is_larger() -> None:
    """Turned round, a product costs the same: its right operand has the pass."""
    one, other = (
        planned("torch.matmul(x, y)", f"torch.zeros({rows}, 64), torch.zeros(64, {cols})", "x, y")
        for rows, cols in ((512, 8192), (8192, 512))
    )
    assert region_us(one, first(one), SHEET) == region_us(other, first(other), SHEET)


def test_a_tile_that_does_not_fit_is_never_chosen() -> None:
    """With sums of 128 elements no setting holds 128 vectors of both operands."""
    one = lowered("small images")
    found = Walk(one, one.defaults(SHEET.sms), modelled_names(knobs_of("matmul")), SHEET, PrecisionPolicy()).ranked()
    tiles = {
        (each.parameters["BLOCK_M"], each.parameters["BLOCK_N"]) for each in found if each.parameters["programs"] == OPERAND_STATIONARY
    }
    assert tiles == {(128, 64), (64, 64), (64, 128)}


def test_short_sums_wait_for_their_results() -> None:
    """16384 by 64 by 16384, a tile of 128 by 128 a program or walked, is modelled within 5 % of the 768 µs that an H200 took."""
    one = planned("torch.matmul(x, y)", "torch.zeros(16384, 64), torch.zeros(64, 16384)", "x, y")
    tile = {"BLOCK_M": 128, "BLOCK_N": 128, "BLOCK_K": 64, "num_warps": 8, "precision": "fp16x3", "accumulate": "chunked"}
    for programs in ("data_parallel", "persistent"):
        assert region_us(one, {**one.defaults(SHEET.sms), **tile, "programs": programs}, SHEET) == pytest.approx(768, rel=0.05)
