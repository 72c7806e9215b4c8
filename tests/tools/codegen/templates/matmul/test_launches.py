"""What the cost model makes of a product's programs, loads and parts."""

from __future__ import annotations

import pytest

from tests.tools.cost.test_region_settings import SHEET, planned
from tools.codegen.schedule.plan import Planned
from tools.codegen.templates.matmul.launches import matmul_launches
from tools.codegen.templates.registry import knobs_of
from tools.cost.launches import region_us
from tools.cost.region_settings import modelled_names
from tools.cost.walk import Walk
from tools.hardware import load_sheet
from tools.records import PrecisionPolicy

TILE = {"BLOCK_M": 128, "BLOCK_N": 128, "BLOCK_K": 64, "SPLIT_K": 1, "precision": "fp16x3", "accumulate": "chunked", "num_warps": 8}


def product(rows: int, inner: int, cols: int) -> Planned:
    """A product of two float32 matrices."""
    return planned("torch.matmul(x, y)", f"torch.randn({rows}, {inner}), torch.randn({inner}, {cols})", "x, y")


def modelled(one: Planned, **changes: object) -> float:
    """Expected time of a product with these parameters, microseconds."""
    return region_us(one, {**one.defaults(SHEET.sms), **TILE, **changes}, SHEET) or 0.0  # type: ignore[dict-item]  # words and numbers


def test_a_last_round_of_few_tiles_is_better_shared_out() -> None:
    """144 tiles take two rounds of 132 programs, or a little more than one where the last twelve are shared out."""
    one = product(1536, 4096, 1536)
    assert modelled(one, programs="stream_k") < 0.75 * modelled(one)


def test_full_rounds_leave_nothing_to_share() -> None:
    """132 tiles for 132 multiprocessors are modelled alike, whatever a program does."""
    one = product(128 * 12, 4096, 128 * 11)
    assert modelled(one, programs="stream_k") == modelled(one, programs="persistent") == modelled(one)


def test_a_walk_of_tiles_has_a_program_a_multiprocessor() -> None:
    """A persistent walk counts the busiest program's tiles, so uneven rounds cost it as much as they cost one program a tile."""
    one = product(1536, 4096, 1536)
    walk = matmul_launches(one.kernel, {**one.defaults(SHEET.sms), **TILE, "programs": "persistent"}, SHEET)[0]
    apart = matmul_launches(one.kernel, {**one.defaults(SHEET.sms), **TILE}, SHEET)[0]
    assert walk.programs == SHEET.sms
    assert walk.product_flops == pytest.approx(apart.product_flops * 2 * 132 / 144)


@pytest.mark.parametrize(
    ("programs", "loads", "measured_us"),
    [
        ("data_parallel", "descriptors", 854),
        ("stream_k", "pointers", 882),
        ("stream_k", "descriptors", 856),
        ("persistent", "pointers", 875),
    ],
)
def test_programs_and_loads_of_halves_gain_what_was_measured(programs: str, loads: str, measured_us: float) -> None:
    """On an H200 at 4096³ each is modelled, over a tile a program by pointers, within 1 % of what was measured (880 µs)."""
    one = product(4096, 4096, 4096)
    gain = modelled(one, programs=programs, loads=loads) / modelled(one)
    assert gain == pytest.approx(measured_us / 880, rel=0.01)


def test_descriptors_are_taken_to_gain_nothing_where_they_were_not_measured() -> None:
    """Six products of bfloat16 parts are modelled alike by descriptors and by pointers."""
    one = product(4096, 4096, 4096)
    pointers, described = (modelled(one, precision="bf16x6", BLOCK_K=32, loads=loads) for loads in ("pointers", "descriptors"))
    assert described == pytest.approx(pointers, rel=0.002)


def test_six_products_take_longer_than_three() -> None:
    """Three bfloat16 parts take between one and a half and two and a half times as long as two halves."""
    one = product(4096, 4096, 4096)
    assert 1.5 < modelled(one, precision="bf16x6", BLOCK_K=32) / modelled(one, BLOCK_K=32) < 2.5


@pytest.mark.parametrize(("name", "expected"), [("h200", True), ("a100", False)])
def test_settings_have_descriptors_where_the_hardware_fetches_by_them(name: str, expected: bool) -> None:
    """The settings of a product that are looked at fetch by descriptor on Hopper, and never on Ampere."""
    one, sheet = product(4096, 4096, 4096), load_sheet(name)
    found = Walk(one, one.defaults(sheet.sms), modelled_names(knobs_of("matmul")), sheet, PrecisionPolicy()).ranked()
    assert any(setting.parameters["loads"] == "descriptors" for setting in found) is expected
    assert all(setting.parameters["precision"] not in ("tf32", "bf16x3") for setting in found)


def test_tiles_of_few_rows_are_fetched_by_pointers() -> None:
    """Describing costs the host at every call, and tiles that the asynchronous units do not take gain next to nothing."""
    one = product(4096, 4096, 4096)
    setting = {**one.defaults(SHEET.sms), "loads": "descriptors"}
    assert [rows for rows in (16, 32, 64, 128) if one.fits({**setting, "BLOCK_M": rows, "num_warps": 4}, "loads", SHEET)] == [64, 128]


H100_HALVES = (
    ((4096, 3072, 12288), (256, 128, "data_parallel", "descriptors"), 438.7),
    ((4096, 3072, 12288), (128, 256, "persistent", "descriptors"), 429.7),
    ((4096, 12288, 3072), (256, 128, "data_parallel", "descriptors"), 397.1),
    ((2048, 4096, 22016), (128, 128, "data_parallel", "descriptors"), 590.0),
    ((2048, 4096, 22016), (128, 256, "data_parallel", "pointers"), 693.5),
)
"""Rows, summed elements and columns; tile, programs and loads at steps of 64, four stages and eight warps; microseconds on an H100."""


@pytest.mark.parametrize(("sizes", "setting", "measured_us"), H100_HALVES)
def test_products_of_bfloat16_take_about_what_was_measured(
    sizes: tuple[int, int, int], setting: tuple[int, int, str, str], measured_us: float
) -> None:
    """A linear layer of bfloat16 with what follows it is modelled within a fifth of what it took on an H100."""
    (rows, inner, cols), (block_m, block_n, programs, loads) = sizes, setting
    made = f"torch.randn({rows}, {inner}, dtype=torch.bfloat16), torch.randn({cols}, {inner}, dtype=torch.bfloat16)"
    one = planned("torch.relu(torch.nn.functional.linear(x, y)).square()", made, "x, y")
    tile = {"BLOCK_M": block_m, "BLOCK_N": block_n, "BLOCK_K": 64, "num_stages": 4, "num_warps": 8, "precision": "ieee"}
    us = region_us(one, {**one.defaults(132), **tile, "accumulate": "direct", "programs": programs, "loads": loads}, load_sheet("h100"))
    assert us == pytest.approx(measured_us, rel=0.2)


@pytest.mark.parametrize(("text", "wanted"), [("torch.bmm(x, y)", True), ("torch.einsum('sic,sjd->ijcd', x, y)", False)])
def test_only_what_turning_lays_along_the_sum_is_turned(text: str, wanted: bool) -> None:
    """A right operand whose last two dimensions are not the sum and the columns is no better off with them exchanged."""
    half = "torch.randn(64, 64, 64).bfloat16()"
    one = planned(text, f"{half}, {half}", "x, y")
    assert one.fits({**one.defaults(SHEET.sms), "right": "k_major"}, "right", SHEET) == wanted


@pytest.mark.parametrize(
    ("text", "precision", "wanted"),
    [("x @ y", "tf32x3", True), ("x @ y", "ieee", False), ("x @ y.t()", "tf32x3", False), ("x.t() @ y", "tf32x3", False)],
)
def test_operands_change_places_where_the_left_one_lies_along_the_sum(text: str, precision: str, wanted: bool) -> None:
    """A transpose is made where its right operand is better to read than the product's own."""
    one = planned(text, "torch.randn(256, 256), torch.randn(256, 256)", "x, y")
    setting = {**one.defaults(SHEET.sms), "right": "exchanged", "precision": precision}
    assert one.fits(setting, "right", SHEET) == wanted


def test_exchanged_operands_take_half_as_long() -> None:
    """4096³ in three products of TF32 took 2009 µs with a transposed product, 3904 without (an H100): expected within a fifth."""
    one = planned("x @ y", "torch.randn(4096, 4096), torch.randn(4096, 4096)", "x, y")
    tile = {"BLOCK_M": 128, "BLOCK_N": 128, "BLOCK_K": 32, "num_stages": 3, "num_warps": 8, "precision": "tf32x3", "accumulate": "chunked"}
    us = [region_us(one, {**one.defaults(132), **tile, "right": right}, load_sheet("h100")) for right in ("as_is", "exchanged")]
    assert us == [pytest.approx(3904, rel=0.2), pytest.approx(2009, rel=0.2)]


def test_programs_that_hold_a_tile_pay_for_elements_that_lie_apart() -> None:
    """A batch that lies side by side gives each element of a matrix a sector of its own, whatever a program holds."""
    apart, near = (
        planned(f"torch.einsum('{words},bhkn->bhmn', x, y)", f"torch.randn({sizes}), torch.randn(32, 24, 128, 64)", "x, y")
        for words, sizes in (("bmkh", "32, 128, 128, 24"), ("bhmk", "32, 24, 128, 128"))
    )
    held = {"programs": "operand_stationary", "BLOCK_K": 128, "num_warps": 4}
    assert modelled(apart, **held) > 1.5 * modelled(near, **held)
