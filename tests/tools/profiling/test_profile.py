"""Profiles of candidates and of the reference: figures with their sources, one bottleneck, and what could not be read."""

from __future__ import annotations

from tests.support.makers import launch, passed, problem, timing
from tests.tools.conftest import Read
from tools.cost.estimate import estimate_reference, estimate_time
from tools.profiling.ncu import Counters
from tools.profiling.profile import profile_candidate, profile_reference
from tools.records import ROOT, Baselines, Bottleneck, Figure, FigureSource, HardwareSheet, OperatorFamily, Sample, Tier

ROWS = (65_536, 1024)
SOFTMAX = problem((ROWS,), ROWS, operators=("aten.softmax.int",), families=(OperatorFamily.SOFTMAX,))
WORK = (launch(ROWS, ROWS, name="softmax", grid=65_536),)


def estimated(sheet: HardwareSheet) -> Baselines:
    """What a machine without a GPU says of the reference."""
    return Baselines(tier=Tier.ESTIMATED, estimate=estimate_reference(SOFTMAX, sheet), device=sheet.name)


def measured(eager_us: float = 250.0) -> Baselines:
    """Baselines that were timed."""
    samples = {"eager": Sample(median_us=eager_us, low_us=eager_us, high_us=eager_us, count=50)}
    return Baselines(tier=Tier.IN_PROCESS, samples=samples, device="NVIDIA H200")


def test_a_measured_candidate_has_measured_shares(h200: HardwareSheet, read: Read) -> None:
    """536.9 MB in 130 µs are 4130 GB/s by events, 96 % of the measured copy and 86 % of the datasheet's bandwidth."""
    evaluation = passed(timing=timing(130.0), launches=WORK, kernels=(read("softmax_sm90"),))
    profile = profile_candidate(SOFTMAX, evaluation, measured(), h200)
    figures = {f.name: f for f in profile.figures}
    assert round(figures["achieved_gbps"].value) == 4130
    assert round(figures["copy_share"].value, 2) == 0.96
    assert round(figures["peak_share"].value, 2) == 0.86
    assert figures["copy_share"].source is figures["time_us"].source is FigureSource.EVENTS
    assert profile.bottleneck is Bottleneck.DRAM_BANDWIDTH


def test_an_estimated_candidate_has_modelled_shares(h200: HardwareSheet, read: Read) -> None:
    """Where nothing was timed, no figure claims events."""
    kernels = (read("softmax_sm90"),)
    evaluation = passed(estimate=estimate_time(SOFTMAX, WORK, kernels, h200), launches=WORK, kernels=kernels)
    profile = profile_candidate(SOFTMAX, evaluation, estimated(h200), h200)
    assert {f.source for f in profile.figures} == {FigureSource.STATIC, FigureSource.MODEL}
    assert "estimated" in profile.evidence


def test_kernel_figures_are_the_heaviest_launchs(h200: HardwareSheet, read: Read) -> None:
    """Registers, occupancy, widest access and mix are those of the launch that takes most of the call, and it is named."""
    kernels = (read("add_sm90"), read("softmax_sm90"))
    work = (launch((1024,), (1024,), (1024,), name="add", grid=1), *WORK)
    profile = profile_candidate(SOFTMAX, passed(timing=timing(130.0), launches=work, kernels=kernels), measured(), h200)
    assert profile.figure("registers") == kernels[1].registers
    assert profile.figure("widest_load_bytes") == 16
    assert profile.figure("occupancy") == 1.0
    assert round(profile.figure("waves") or 0, 1) == 31.0
    assert any("softmax" in note for note in profile.notes)


def test_spills_are_found(h200: HardwareSheet, read: Read) -> None:
    """A kernel that spills is limited by registers, whatever its bandwidth."""
    rows = (8192, 4096)
    spilled = (launch(rows, rows, name="softmax", grid=8192, num_warps=1),)
    evaluation = passed(timing=timing(200.0), launches=spilled, kernels=(read("softmax_spilling_sm90"),))
    assert profile_candidate(problem((rows,), rows), evaluation, measured(), h200).bottleneck is Bottleneck.REGISTERS


def test_a_library_candidate_says_that_its_kernel_is_not_read(h200: HardwareSheet) -> None:
    """A candidate that calls a library has call figures, and a note instead of kernel figures."""
    work = (launch(ROWS, ROWS, name="aten.softmax.int", kind="library"),)
    profile = profile_candidate(SOFTMAX, passed(timing=timing(250.0), launches=work), measured(), h200)
    assert profile.figure("registers") is None
    assert any("library's aten.softmax.int" in note for note in profile.notes)


def test_a_pass_without_a_time_or_launches_is_still_profiled(h200: HardwareSheet) -> None:
    """What is missing is said in notes, one sentence each, and nothing fails."""
    profile = profile_candidate(SOFTMAX, passed(), measured(), h200)
    assert any("holds no time" in note for note in profile.notes)
    assert any("No launch was recorded" in note for note in profile.notes)


def test_the_reference_is_profiled_by_its_eager_time(h200: HardwareSheet) -> None:
    """Two passes over an intermediate are excess traffic, measured by events."""
    twice = problem((ROWS,), ROWS, operators=("aten.add.Tensor", "aten.relu.default"), eager_bytes=4 * 65_536 * 1024 * 4)
    profile = profile_reference(twice, measured(270.0), h200)
    assert profile.candidate == ROOT
    assert profile.bottleneck is Bottleneck.EXCESS_TRAFFIC
    assert profile.figure("eager_us") == profile.figure("time_us") == 270.0
    assert profile.figure("traffic_ratio") == 2.0


def test_the_reference_without_a_gpu_is_profiled_by_the_model(h200: HardwareSheet) -> None:
    """Without a GPU the reference's figures come from the model and from counting."""
    profile = profile_reference(SOFTMAX, estimated(h200), h200)
    assert profile.bottleneck is Bottleneck.MEMORY_LATENCY
    assert {f.source for f in profile.figures} == {FigureSource.STATIC, FigureSource.MODEL}


def test_a_float32_product_could_use_a_faster_unit(h200: HardwareSheet) -> None:
    """Eager float32 products run on the ordinary cores, and three half-precision ones would be exact enough."""
    size = (4096, 4096)
    product = problem((size, size), size, operators=("aten.mm.default",), matmul_flops=2 * 4096**3)
    profile = profile_reference(product, measured(2683.0), h200)
    assert profile.bottleneck is Bottleneck.COMPUTE_UNIT
    assert "67 TFLOP/s" in profile.evidence


def test_counters_stand_beside_the_static_figures(h200: HardwareSheet, read: Read) -> None:
    """Counted figures keep their source, name the bottleneck, and their origin and what is missing are in the notes."""
    figures = tuple(
        Figure(name=name, value=value, unit="percent", source=FigureSource.COUNTERS)
        for name, value in (("dram_percent", 88.0), ("sm_percent", 20.0))
    )
    evaluation = passed(timing=timing(300.0), launches=WORK, kernels=(read("softmax_sm90"),))
    found = profile_candidate(
        SOFTMAX, evaluation, measured(), h200, Counters(figures=figures, kernels=("k",), sandbox="walls", note="No L2 here.")
    )

    assert found.bottleneck is Bottleneck.DRAM_BANDWIDTH
    assert "88 %" in found.evidence
    assert {f.source for f in found.figures if f.name == "dram_percent"} == {FigureSource.COUNTERS}
    assert any("No L2 here." in note for note in found.notes)
    assert any("walls" in note for note in found.notes)
