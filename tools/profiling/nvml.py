"""Clocks, power, temperature and throttling while something is timed, through NVML and without torch."""

from __future__ import annotations

import os
import statistics
import threading
from collections.abc import Callable
from functools import cache
from types import TracebackType
from typing import Any, NamedTuple, Self

PERIOD_S = 0.02

_SLOWDOWNS = (
    "nvmlClocksThrottleReasonSwPowerCap",
    "nvmlClocksThrottleReasonHwSlowdown",
    "nvmlClocksThrottleReasonSwThermalSlowdown",
    "nvmlClocksThrottleReasonHwThermalSlowdown",
    "nvmlClocksThrottleReasonHwPowerBrakeSlowdown",
)
"""Reasons that slow a busy device down; an idle clock, a set application clock and a sync boost are not among them."""


class _Reading(NamedTuple):
    clock_mhz: float | None
    power_w: float | None
    temperature_c: float | None
    reasons: int | None


class DeviceUse(NamedTuple):
    """Who holds how much of a device's memory."""

    used_bytes: int
    processes: dict[int, int | None]
    """Bytes by process id, as far as the driver tells; processes of other containers may be missing."""

    @property
    def unaccounted_bytes(self) -> int | None:
        """Memory in use that no listed process holds; None where the driver does not say what each holds."""
        held = [nbytes for nbytes in self.processes.values() if nbytes is not None]
        return self.used_bytes - sum(held) if len(held) == len(self.processes) else None


class NvmlSampler:
    """Samples one device in a thread, every 20 ms, while the `with` block runs.

    `index` is NVML's own index (all devices of the machine, whatever `CUDA_VISIBLE_DEVICES` says); None samples nothing.
    Every figure is None where NVML, the device or the figure is absent: a block never fails because of its sampler.
    """

    def __init__(self, index: int | None) -> None:
        self._index = index
        self._readings: list[_Reading] = []
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    def __enter__(self) -> Self:
        """Start sampling, if there is anything to sample."""
        if self._index is not None and (opened := _open(self._index)) is not None:
            self._thread = threading.Thread(target=self._sample, args=opened, name="nvml-sampler", daemon=True)
            self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """Stop sampling."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join()

    @property
    def clock_mhz(self) -> float | None:
        """Median SM clock."""
        return _median([r.clock_mhz for r in self._readings])

    @property
    def power_w(self) -> float | None:
        """Median board power."""
        return _median([r.power_w for r in self._readings])

    @property
    def temperature_c(self) -> float | None:
        """Median GPU temperature."""
        return _median([r.temperature_c for r in self._readings])

    @property
    def throttled(self) -> bool | None:
        """Whether any sample shows a slowdown for power or heat; None where that could not be read."""
        reasons = [r.reasons for r in self._readings if r.reasons is not None]
        return any(reason != 0 for reason in reasons) if reasons else None

    @property
    def samples(self) -> int:
        """How many samples were taken."""
        return len(self._readings)

    def _sample(self, nvml: Any, handle: Any) -> None:
        slowdowns = sum(getattr(nvml, name, 0) for name in _SLOWDOWNS)
        # at least one sample, however short the block
        while True:
            self._readings.append(_read(nvml, handle, slowdowns))
            if self._stop.wait(PERIOD_S):
                return


def driver_version() -> str | None:
    """Version of the NVIDIA driver; None without one."""
    return _ask(lambda nvml: _text(nvml.nvmlSystemGetDriverVersion()))


def device_count() -> int:
    """NVIDIA GPUs of this machine, whatever `CUDA_VISIBLE_DEVICES` says; 0 without a driver."""
    return int(_ask(lambda nvml: str(nvml.nvmlDeviceGetCount())) or 0)


def device_title(index: int) -> str | None:
    """Name of the device at NVML's `index`, e.g. `NVIDIA H200`; None without one."""
    return _ask(lambda nvml: _text(nvml.nvmlDeviceGetName(nvml.nvmlDeviceGetHandleByIndex(index))))


def device_uuid(index: int) -> str | None:
    """UUID of the device at NVML's `index`, as `CUDA_VISIBLE_DEVICES` takes it; None without one."""
    return _ask(lambda nvml: _text(nvml.nvmlDeviceGetUUID(nvml.nvmlDeviceGetHandleByIndex(index))))


def device_bytes(index: int) -> int | None:
    """Memory of the device at NVML's `index`; None without one."""
    found = _ask(lambda nvml: str(nvml.nvmlDeviceGetMemoryInfo(nvml.nvmlDeviceGetHandleByIndex(index)).total))
    return None if found is None else int(found)


def device_use(index: int) -> DeviceUse | None:
    """Look at the memory of the device at NVML's `index` and at the processes that compute on it; None where that cannot be read."""
    opened = _open(index)
    if opened is None:
        return None
    nvml, handle = opened
    try:
        used = int(nvml.nvmlDeviceGetMemoryInfo(handle).used)
        running = nvml.nvmlDeviceGetComputeRunningProcesses(handle)
        return DeviceUse(used, {int(one.pid): None if one.usedGpuMemory is None else int(one.usedGpuMemory) for one in running})
    except nvml.NVMLError:
        return None


def _ask(question: Callable[[Any], str]) -> str | None:
    nvml = opened_nvml()
    if nvml is None:
        return None
    try:
        return question(nvml)
    except nvml.NVMLError:
        return None


def _open(index: int) -> tuple[Any, Any] | None:
    nvml = opened_nvml()
    if nvml is None:
        return None
    try:
        return nvml, nvml.nvmlDeviceGetHandleByIndex(index)
    except nvml.NVMLError:
        return None


def opened_nvml() -> Any:
    """Give the binding, open in this process for good; None without a driver.

    To open it looks at every GPU of the machine, and something is asked several times a candidate, also while the device is held.
    """
    try:
        import pynvml
    except ImportError:
        return None
    # the binding is untyped
    nvml: Any = pynvml
    try:
        _open_once(os.getpid(), nvml)
    except nvml.NVMLError:
        return None
    return nvml


@cache
def _open_once(_process: int, nvml: Any) -> None:
    """Open it where this process has not; a failure is not kept."""
    nvml.nvmlInit()


def _read(nvml: Any, handle: Any, slowdowns: int) -> _Reading:
    return _Reading(
        clock_mhz=_figure(nvml, nvml.nvmlDeviceGetClockInfo, handle, nvml.NVML_CLOCK_SM),
        # NVML says milliwatts
        power_w=None if (milli := _figure(nvml, nvml.nvmlDeviceGetPowerUsage, handle)) is None else milli / 1000,
        temperature_c=_figure(nvml, nvml.nvmlDeviceGetTemperature, handle, nvml.NVML_TEMPERATURE_GPU),
        reasons=None if (now := _figure(nvml, nvml.nvmlDeviceGetCurrentClocksThrottleReasons, handle)) is None else int(now) & slowdowns,
    )


def _figure(nvml: Any, function: Any, *arguments: Any) -> float | None:
    try:
        return float(function(*arguments))
    except nvml.NVMLError:
        return None


def _median(values: list[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return statistics.median(known) if known else None


def _text(value: Any) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)
