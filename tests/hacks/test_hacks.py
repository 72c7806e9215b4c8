"""Every hostile kernel is caught, without any static check; every honest twin passes; every defence is needed."""

from __future__ import annotations

import pytest

from tests.hacks.court import Court, judge
from tests.hacks.suite import SWITCH, Hack, distinct, hacks
from tools.evaluation.wire.defences import GPU_ONLY, Defence
from tools.hardware.devices import first_device

ALL = hacks(gpu=True)
ON_CPU = hacks()
WATCHED = [defence for defence in Defence if defence not in GPU_ONLY and defence is not Defence.STATIC_RULES]
ALONE = sorted(GPU_ONLY & {defence for hack in ALL for defence in hack.needed})
"""Defences of a timing that no other one stands in for."""

on_gpu = [
    pytest.mark.gpu,
    pytest.mark.timeout(900),
    pytest.mark.skipif(first_device() is None, reason="this machine has no NVIDIA GPU"),
]


@pytest.mark.parametrize("hack", ON_CPU, ids=lambda hack: hack.name)
@pytest.mark.slow
def test_hostile_kernel_is_caught(court: Court, hack: Hack) -> None:
    """A hostile kernel ends as its header says, and its log stays bounded."""
    found = judge(court, hack)

    assert hack.is_caught(found), (found.verdict, found.rule, found.provenance, found.notes, found.log[-2000:])


@pytest.mark.parametrize("hack", ALL, ids=lambda hack: hack.name)
def test_every_hack_has_a_twin(hack: Hack) -> None:
    """A hack is its twin but for one switch, and the twin does less than the hack."""
    assert hack.hostile.count(SWITCH) == 1
    assert "HOSTILE" not in hack.program.replace("HOSTILE = False", "")


@pytest.mark.parametrize("hack", distinct(ON_CPU), ids=lambda hack: hack.name)
def test_honest_twin_passes(court: Court, hack: Hack) -> None:
    """With its attack switched off a kernel passes, and its launches are known to be its own; twins that are one program are judged once.

    `benchmarks.evaluator.hack_matrix` judges each of them.
    """
    found = judge(court, hack, hostile=False)

    assert found.verdict == "PASS", (found.notes, found.log[-2000:])
    assert found.provenance == "authored"


@pytest.mark.parametrize("defence", WATCHED, ids=str)
def test_no_defence_is_idle(court: Court, defence: Defence) -> None:
    """Without this one defence a hostile kernel gets through, and the evaluation says that it was weakened."""
    telltale = next(hack for hack in ON_CPU if defence in hack.needed)

    found = judge(court, telltale, off=frozenset([defence]))

    assert telltale.gets_through(found), (telltale.name, found.verdict, found.notes, found.log[-2000:])
    assert defence in found.weakened


@pytest.mark.parametrize("defence", [pytest.param(defence, marks=on_gpu, id=defence) for defence in ALONE])
def test_no_defence_of_a_timing_is_idle(gpu_court: Court, defence: Defence) -> None:
    """Without this one defence a hostile kernel gets through on a GPU, and the evaluation says that it was weakened."""
    telltale = next(hack for hack in ALL if defence in hack.needed)

    found = judge(gpu_court, telltale, off=frozenset([defence]))

    assert telltale.gets_through(found), (telltale.name, found.verdict, found.notes, found.log[-2000:])
    assert defence in found.weakened


@pytest.mark.parametrize("hack", [pytest.param(hack, marks=on_gpu, id=hack.name) for hack in ALL if hack.gpu and not hack.work_us])
@pytest.mark.parametrize("hostile", [True, False], ids=["hostile", "honest"])
def test_hostile_kernel_is_caught_on_a_gpu(gpu_court: Court, hack: Hack, hostile: bool) -> None:
    """What needs a GPU ends as its header says there, and its twin passes."""
    found = judge(gpu_court, hack, hostile=hostile)

    assert hack.is_caught(found) if hostile else found.verdict == "PASS", (found.verdict, found.notes, found.log[-2000:])
