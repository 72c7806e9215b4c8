"""Every hostile kernel is caught, without any static check; every honest twin passes."""

from __future__ import annotations

import pytest

from tests.hacks.conftest import Court
from tests.hacks.suite import SWITCH, Hack, hacks
from tools.evaluation.log import TAIL_BYTES

ALL = hacks()


@pytest.mark.parametrize("hack", ALL, ids=lambda hack: hack.name)
def test_hostile_kernel_is_caught(court: Court, hack: Hack) -> None:
    """A hostile kernel gets the verdict its header names, and its log stays bounded."""
    evaluation = court.judge(hack.hostile, timeout_s=3.0 if "TIMED_OUT" in hack.verdicts else 20.0)

    assert evaluation.verdict in hack.verdicts, (evaluation.notes, evaluation.log[-2000:])
    assert evaluation.rule == hack.rule
    assert len(evaluation.log) <= TAIL_BYTES + 8


@pytest.mark.parametrize("hack", ALL, ids=lambda hack: hack.name)
def test_honest_twin_passes(court: Court, hack: Hack) -> None:
    """The same kernel with its attack switched off passes, and its launches are known to be its own."""
    assert SWITCH in hack.hostile

    evaluation = court.judge(hack.honest)

    assert evaluation.verdict == "PASS", (evaluation.notes, evaluation.log[-2000:])
    assert evaluation.provenance == "authored"
