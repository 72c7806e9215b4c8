"""On a GPU: the device after a candidate that broke its context, and whose name a time carries."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator

import pytest

from tools.errors import UserError
from tools.evaluation import EvaluationRequest, LocalPool
from tools.hardware import detect_sheet, load_sheet
from tools.hardware.devices import first_device
from tools.profiling.nvml import device_title, device_use

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(first_device() is None, reason="this machine has no NVIDIA GPU"),
    pytest.mark.timeout(900),
]

Make = Callable[..., EvaluationRequest]


@pytest.fixture(scope="module")
def gpu_pool(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalPool]:
    """The pool of the first GPU."""
    made = LocalPool(tmp_path_factory.mktemp("pool"), first_device())
    yield made
    asyncio.run(made.close())


def test_a_broken_context_is_the_candidates_and_the_device_is_well(gpu_pool: LocalPool, request_for: Make, kernel: str) -> None:
    """An illegal access is CRASHED, the sentinel finds the device well, and the next candidate is timed under the device's own name."""
    sheet = detect_sheet()
    assert sheet is not None
    wild = kernel.replace("out_ptr + offsets,", "out_ptr + offsets.to(tl.int64) * 4294967296,")

    crashed = asyncio.run(gpu_pool.evaluate(request_for(wild, timeout_s=120.0, target=sheet.name)))
    after = asyncio.run(gpu_pool.evaluate(request_for(kernel, timeout_s=120.0, target=sheet.name)))

    assert crashed.verdict == "CRASHED", crashed.notes
    assert after.verdict == "PASS", (after.notes, after.log)
    assert after.timing is not None
    assert after.timing.device == device_title(first_device() or 0)
    assert after.timing.raw is not None
    assert after.timing.raw.alone_before.keys() == after.timing.raw.alone_after.keys() == after.timing.baselines.keys()


def test_the_driver_says_who_holds_memory() -> None:
    """What NVML tells of the device is enough to look for leaks, or says that it is not."""
    use = device_use(first_device() or 0)

    assert use is not None
    assert use.used_bytes > 0
    assert use.unaccounted_bytes is None or use.unaccounted_bytes < use.used_bytes + 1


def test_another_devices_target_is_refused(gpu_pool: LocalPool, request_for: Make, kernel: str) -> None:
    """Nothing is timed under the name of a device that is not there."""
    sheet = detect_sheet()
    assert sheet is not None
    other = next(name for name in ("a100", "h200") if load_sheet(name).title != sheet.title)

    with pytest.raises(UserError, match="the target is"):
        asyncio.run(gpu_pool.evaluate(request_for(kernel, target=other)))
