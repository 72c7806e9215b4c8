"""The end of a run whose reference leaves nothing to gain."""

from __future__ import annotations

from pathlib import Path

from graphs.optimize.confirm import deliver, rival
from tests.support.loop import small_services
from tests.support.makers import sample
from tools.hardware.rates import copy_gbps
from tools.records import ROOT, Baselines, Bottleneck, Figure, FigureSource, Profile, Tier


async def test_the_delivery_says_that_nothing_is_left_to_gain(tmp_path: Path) -> None:
    """Where the best baseline runs at the copy rate and so nothing was tried, the reason names its time and that rate."""
    services = small_services(tmp_path / "run")
    time = 1e9 / copy_gbps(services.sheet) / 1e3 / 0.99
    figures = (
        Figure(name="time_us", value=time, unit="us", source=FigureSource.EVENTS),
        Figure(name="eager_us", value=time, unit="us", source=FigureSource.EVENTS),
        Figure(name="compulsory_bytes", value=1e9, unit="bytes", source=FigureSource.STATIC),
    )
    full = Profile(candidate=ROOT, target=services.sheet.name, figures=figures, bottleneck=Bottleneck.DRAM_BANDWIDTH, evidence="At a copy.")
    services.store.put("profile", ROOT, full)
    delivery = await deliver(services, [], "no untried step on any right version")
    assert delivery.candidate == ROOT
    assert delivery.reason.startswith(f"Keep the reference: eager takes {time:.4g} µs, and 99% of that is what its compulsory 1 GB take")
    assert delivery.reason.endswith("nothing is left to gain.")


def test_who_keeps_the_reference_is_told_that_a_compiler_makes_it_faster() -> None:
    """What no candidate beat is named: torch.compile, with its own gain, where that is the faster baseline."""
    known = {"eager": sample(100.0), "compile": sample(50.0)}
    baselines = Baselines(tier=Tier.SEALED, samples=known, device="GPU")
    assert rival(baselines, "better") == "torch.compile of the reference, 2.00x as fast as eager"
    assert rival(baselines, "eager") == "the reference"
    assert rival(baselines.model_copy(update={"samples": known | {"compile": sample(200.0)}}), "better") == "the reference"
