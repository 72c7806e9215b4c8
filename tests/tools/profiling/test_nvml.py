"""The NVML sampler on machines with and without a device."""

from __future__ import annotations

import sys
import threading
import time
from types import ModuleType

import pytest

from tools.profiling.nvml import NvmlSampler, device_title, driver_version


@pytest.mark.parametrize("index", [None, 9999])
def test_without_a_device_every_figure_is_none(index: int | None) -> None:
    """A block without a device to sample runs as if there were no sampler, and says nothing about clocks."""
    with NvmlSampler(index) as sampler:
        pass
    assert sampler.clock_mhz is sampler.power_w is sampler.temperature_c is sampler.throttled is None
    assert sampler.samples == 0


def test_an_error_in_the_block_is_not_hidden() -> None:
    """What the timed block raises comes out, and no thread stays behind."""
    with pytest.raises(ValueError, match="mine"), NvmlSampler(9999):
        raise ValueError("mine")
    assert not any(thread.name == "nvml-sampler" for thread in threading.enumerate())


def test_a_device_that_does_not_exist_has_no_title() -> None:
    """Asking for a device beyond the last gives None, not an error."""
    assert device_title(9999) is None


def test_it_is_opened_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever asks twice opens it once; one that could not be opened is tried again."""
    opened: list[str] = []

    class Binding(ModuleType):
        NVMLError = OSError
        fails = True

        def nvmlInit(self) -> None:  # noqa: N802 - the driver's name
            opened.append("once")
            if self.fails:
                raise OSError

        def nvmlSystemGetDriverVersion(self) -> str:  # noqa: N802 - the driver's name
            return "580"

    binding = Binding("pynvml")
    monkeypatch.setitem(sys.modules, "pynvml", binding)
    assert driver_version() is None
    binding.fails = False
    assert [driver_version(), driver_version()] == ["580", "580"]
    assert len(opened) == 2


@pytest.mark.gpu
@pytest.mark.skipif(driver_version() is None, reason="needs an NVIDIA driver")
def test_a_device_is_sampled() -> None:
    """On a GPU the sampler reads a clock and a power within reason, about every 20 ms; where the driver is busy, less often."""
    started = time.monotonic()
    with NvmlSampler(0) as sampler:
        time.sleep(0.2)
        while sampler.samples < 3 and time.monotonic() < started + 10:
            time.sleep(0.02)
    seconds = time.monotonic() - started
    assert 100 < (sampler.clock_mhz or 0) < 4000
    assert 10 < (sampler.power_w or 0) < 2000
    assert 3 <= sampler.samples <= seconds / 0.02 + 2
    assert driver_version()
