"""The sheets in data/hardware and how they are found."""

import pytest

from tools.errors import UserError
from tools.hardware import detect_sheet, load_sheet, match_title, peak_tflops, sheet_names
from tools.records import HardwareSheet

WORDS = {"name", "title", "backend", "arch", "generation", "sources"}


def test_all_required_devices_have_a_sheet() -> None:
    """Each device that the command line promises has a sheet under its own name."""
    assert {"a100", "h100", "h200", "b200", "l40s", "rtx4090", "mi300x"} <= set(sheet_names())


@pytest.mark.parametrize("name", sheet_names())
def test_every_figure_names_its_source(name: str) -> None:
    """A figure without a source is not in a sheet, nor a source without a figure."""
    sheet = load_sheet(name)
    figures = {f for f in HardwareSheet.model_fields if f not in WORDS and getattr(sheet, f) is not None}
    assert figures == set(sheet.sources)


@pytest.mark.parametrize("name", sheet_names())
def test_figures_are_consistent(name: str) -> None:
    """The float32 rate is what lanes and clock give, and a block's shared memory fits a multiprocessor."""
    sheet = load_sheet(name)
    lanes = {"ampere": 64, "cdna3": 128}.get(sheet.generation, 128)
    computed = 2 * lanes * sheet.sms * sheet.clock_mhz * 1e-6
    assert sheet.fp32_tflops == pytest.approx(computed, rel=0.02)
    assert sheet.shared_kib_per_block <= sheet.shared_kib_per_sm
    assert sheet.copy_gbps is None or sheet.copy_gbps < sheet.memory_gbps
    assert sheet.name == name


def test_unknown_name_lists_the_known_ones() -> None:
    """A wrong target gets the list of right ones."""
    with pytest.raises(UserError, match="h2000") as caught:
        load_sheet("h2000")
    assert all(name in caught.value.mend for name in sheet_names())


def test_titles_match_whole() -> None:
    """A device is recognised by the driver's title, and a lesser sibling is not taken for it."""
    assert match_title("NVIDIA H200").name == "h200"
    assert match_title("nvidia geforce rtx 4090").name == "rtx4090"
    for sibling in ("NVIDIA H100 PCIe", "NVIDIA GeForce RTX 4090 Laptop GPU", "NVIDIA H20", "Tesla T4"):
        with pytest.raises(UserError, match="--target"):
            match_title(sibling)


def test_hidden_devices_are_not_detected(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that may use no GPU detects none."""
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    assert detect_sheet() is None


def test_peak_follows_the_policy() -> None:
    """A looser policy opens faster units to float32 data; narrower data has its own rate under any policy."""
    sheet = load_sheet("h200")
    assert peak_tflops(sheet, "exact", "float32") == sheet.fp32_tflops
    assert peak_tflops(sheet, "tf32", "float32") == sheet.tf32_tflops
    assert peak_tflops(sheet, "bf16", "float32") == sheet.bf16_tflops
    assert peak_tflops(sheet, "exact", "float16") == sheet.fp16_tflops
    assert peak_tflops(sheet, "exact", "float64") == sheet.fp64_tflops


def test_peak_of_split_products_bounds_the_exact_policy() -> None:
    """Float32 products split into three half-precision ones are possible under the exact policy, and bounded."""
    sheet = load_sheet("h200")
    assert peak_tflops(sheet, "exact", "float32", split=True) == pytest.approx(sheet.fp16_tflops / 3)
    assert peak_tflops(sheet, "exact", "float64", split=True) == sheet.fp64_tflops
