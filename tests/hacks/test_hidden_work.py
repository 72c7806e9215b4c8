"""Work that events do not see is caught or charged in full; who works in the open gets the time that a caller waits."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.hacks.hearing import Finding, Trial, heard
from tests.hacks.suite import Hack, bystander, hacks
from tests.hacks.true_time import TrueTime
from tools.hardware.devices import first_device
from tools.records import Correctness, Evaluation, Sample, Tier, Timing, Verdict
from tools.records.correctness import OutputError

TIMES_US = (50, 5, 500, 5000)
"""What a call works beside a pass that takes 5 µs."""
TWIN_TIME_US = 50
HONEST = Path(__file__).parents[1] / "honest" / "kernels"
BYSTANDERS = ("autotuned", "synchronises", "graph_of_the_current_input", "two_streams", "prepares_on_the_host")

HIDING = [hack for hack in hacks(gpu=True) if hack.work_us]
HOSTILE = [Trial(hack.working(us), hostile=True) for us in TIMES_US for hack in HIDING]
IN_THE_OPEN = [
    *(Trial(hack.working(TWIN_TIME_US), hostile=False) for hack in HIDING),
    *(Trial(bystander(HONEST / f"{name}.py"), hostile=False) for name in BYSTANDERS),
]

on_gpu = [
    pytest.mark.gpu,
    pytest.mark.timeout(900),
    pytest.mark.skipif(first_device() is None, reason="this machine has no NVIDIA GPU"),
]


@pytest.fixture(scope="module")
def findings(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> dict[Trial, Finding]:
    """What became of all trials of this session, judged side by side in one pool, which times each alone: no use with `-n`."""
    given = (getattr(item, "callspec", None) for item in request.session.items)
    chosen = (one.params.get("trial") for one in given if one is not None)
    return heard([trial for trial in chosen if isinstance(trial, Trial)], tmp_path_factory.mktemp("hidden-work"))


@pytest.mark.parametrize("trial", [pytest.param(trial, marks=on_gpu, id=trial.name) for trial in HOSTILE])
def test_hidden_work_is_caught_or_charged(findings: dict[Trial, Finding], trial: Trial) -> None:
    """A kernel that works where events do not look is refused, or its figure holds nine tenths of its true time at least."""
    assert trial in findings, "it was not measured or not judged: see rows.jsonl"
    assert not findings[trial].fault, findings[trial].row


@pytest.mark.parametrize("trial", [pytest.param(trial, marks=on_gpu, id=trial.name) for trial in IN_THE_OPEN])
def test_work_in_the_open_gets_the_time_that_its_caller_waits(findings: dict[Trial, Finding], trial: Trial) -> None:
    """Joined streams, graphs, threads, callbacks, hooks and work of the host pass, with a figure neither too low nor too high."""
    assert trial in findings, "it was not measured or not judged: see rows.jsonl"
    assert not findings[trial].fault, findings[trial].row


@pytest.mark.parametrize("hack", HIDING, ids=lambda hack: hack.name)
def test_its_work_is_what_is_asked_for(hack: Hack) -> None:
    """A kernel that hides work is its twin, and does nothing else, for any amount of it."""
    for us in TIMES_US:
        compile(hack.working(us).hostile, hack.name, "exec")
        assert f"\nWORK_US = {us}\n" in hack.working(us).honest


def _published(us: float, *, hostile: bool = True) -> Finding:
    trial = Trial(HIDING[0].working(500), hostile)
    figure = Sample(median_us=us, low_us=us, high_us=us, count=15)
    timing = Timing(tier=Tier.IN_PROCESS, candidate=figure, baselines={"eager": figure}, speedups={"eager": (1.0, 1.0, 1.0)}, device="none")
    error = OutputError(
        output="0",
        relative_l2=0.0,
        worst_row=0.0,
        reference_relative_l2=0.0,
        reference_worst_row=0.0,
        limit_relative_l2=1.0,
        limit_worst_row=1.0,
    )
    correctness = Correctness(outputs=(error,), calls=1, sizes=("as written",), executor="gpu")
    found = Evaluation(candidate="c", verdict=Verdict.PASS, timing=timing, correctness=correctness)
    return Finding(trial, found, own=TrueTime(chained_us=510.0, device_us=float("nan")), honest=TrueTime(chained_us=510.0, device_us=504.0))


def test_a_figure_without_the_work_is_a_fault() -> None:
    """A hostile kernel whose pass alone is published got through, whatever its own events say."""
    assert "said to take 5 µs and takes 504 µs" in _published(5.0).fault
    assert not _published(504.0).fault


def test_a_figure_beyond_what_a_caller_waits_is_a_fault() -> None:
    """An honest kernel is not charged what nobody waits for."""
    assert "its caller waits 510 µs" in _published(2000.0, hostile=False).fault
    assert not _published(520.0, hostile=False).fault
