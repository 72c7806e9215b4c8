"""When a device is quarantined."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tools.errors import MachineError, UserError
from tools.evaluation.sandbox.isolation import PLAIN_UIDS
from tools.evaluation.supervisor.health import LEAK_BYTES, Health, is_orphan_of_ours
from tools.evaluation.trusted.sentinel import is_right
from tools.evaluation.wire.lead_in import end_persistence
from tools.hardware import load_sheet
from tools.hardware.detect import refuse_other_target
from tools.profiling.nvml import DeviceUse


def scripted(*looks: DeviceUse | None) -> Callable[[], DeviceUse | None]:
    """Give one look after the other, the last for ever."""
    left = list(looks)
    return lambda: left.pop(0) if len(left) > 1 else left[0]


def test_known_processes_may_come_and_go() -> None:
    """Standing processes and spare runners hold memory of their own: what the driver puts down to them is no leak."""
    health = Health(0, scripted(DeviceUse(1 << 30, {7: 1 << 30}), DeviceUse(9 << 30, {7: 1 << 30, 8: 8 << 30})), settling_s=0)

    assert health.examine() == ""
    health.demand()


def test_memory_that_nobody_holds_quarantines_the_device() -> None:
    """What stays in use without a process is a leak: the device is not used again, and the sentence says why."""
    leaked = DeviceUse(LEAK_BYTES + (2 << 30), {7: 1 << 30})
    health = Health(3, scripted(DeviceUse(1 << 30, {7: 1 << 30}), leaked), settling_s=0)

    assert "1536 MiB" in health.examine()
    with pytest.raises(MachineError, match="GPU 3 is quarantined: 1536 MiB"):
        health.demand()


def test_memory_that_is_late_is_waited_for() -> None:
    """A driver that gives memory back a moment after a process has died is no reason."""
    first, late = DeviceUse(0, {7: 0}), DeviceUse(4 << 30, {7: 0})
    health = Health(0, scripted(first, late, late, first), settling_s=5)

    assert health.examine() == ""


@pytest.mark.parametrize("look", [None, DeviceUse(9 << 30, {}), DeviceUse(9 << 30, {7: None})], ids=["no NVML", "hidden", "untold"])
def test_a_driver_that_tells_nothing_accuses_nobody(look: DeviceUse | None) -> None:
    """Where processes or their memory are not shown, memory in use is no proof of a leak."""
    assert Health(0, scripted(DeviceUse(0, {7: 0}), look), settling_s=0).examine() == ""


@pytest.mark.parametrize(("uid", "parent", "left"), [(PLAIN_UIDS[5], 1, True), (PLAIN_UIDS[5], 400, False), (1000, 1, False)])
def test_what_is_left_of_a_candidate_has_our_user_and_no_parent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, uid: int, parent: int, left: bool
) -> None:
    """A process under a sandbox's user id is left over once its warden is gone; other people's never are."""
    monkeypatch.setattr("os.geteuid", lambda: 0)
    (tmp_path / "77").mkdir()
    (tmp_path / "77" / "status").write_text(f"Name:\tx\nPPid:\t{parent}\nUid:\t{uid}\t{uid}\t{uid}\t{uid}\n")

    assert is_orphan_of_ours(77, tmp_path) is left
    assert not is_orphan_of_ours(78, tmp_path)


def test_the_first_reason_stays() -> None:
    """A quarantine is not lifted, and keeps its first sentence; no reason is none."""
    health = Health(0, scripted(None), settling_s=0)
    health.quarantine("")
    health.demand()
    health.quarantine("first")
    health.quarantine("second")

    assert health.reason == "first"


def test_sentinel_knows_its_answer() -> None:
    """The sentinel's work has the right answer where the arithmetic is sound."""
    assert is_right("cpu")


def test_without_a_driver_nothing_is_taken_from_the_cache() -> None:
    """Where the CUDA driver's library is not there the share for persisting lines cannot be taken away, and that is told."""
    assert not end_persistence("libnothing-of-that-name.so")


def test_a_target_that_is_not_the_device_is_refused() -> None:
    """Times carry the device's own name: where it has a sheet no other's is taken, and without one the nearest may be."""
    h200, a100 = load_sheet("h200"), load_sheet("a100")
    refuse_other_target(h200.title, h200)
    refuse_other_target("", a100)
    refuse_other_target("NVIDIA Prototype", a100)

    with pytest.raises(UserError, match="the target is"):
        refuse_other_target(h200.title, a100)
