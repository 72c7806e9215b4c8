"""One piece of work under way: what is known so far, and how long its steps took."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from tools.evaluation.processes.device_lock import Stay
from tools.evaluation.wire.jobs.builder import BuildAnswer
from tools.records import PART, EvaluationRequest, KernelResources, Seeds


@dataclass
class Case:
    """A request, and what its phases found and took."""

    request: EvaluationRequest
    build: BuildAnswer = field(default_factory=lambda: BuildAnswer(status="opaque"))
    kernels: tuple[KernelResources, ...] = ()
    notes: list[str] = field(default_factory=list)
    log: str = ""
    seeds: list[Seeds] = field(default_factory=list)
    seconds: dict[str, float] = field(default_factory=dict)
    timed: Callable[[], None] = lambda: None
    """To be called when it was timed: from then on it needs little, and somebody else may be let in."""
    _under_way: str = ""

    @contextmanager
    def phase(self, name: str, after: Stay | None = None) -> Iterator[None]:
        """Take down how long a phase took, and how long it waited for its turn on the device."""
        start, outer = time.monotonic(), self._under_way
        self._under_way = name
        if after is not None:
            self.waited(after.waited_s)
        try:
            yield
        finally:
            self._under_way = outer
            self.seconds[name] = self.seconds.get(name, 0.0) + time.monotonic() - start

    def waited(self, seconds: float) -> None:
        """Take down a wait for the device, or for room on it."""
        self.seconds["queue"] = self.seconds.get("queue", 0.0) + seconds

    @contextmanager
    def part(self, name: str) -> Iterator[None]:
        """Take down how long a part of the phase that is under way took."""
        with self.phase(f"{self._under_way}{PART}{name}"):
            yield


class Steps:
    """Takes down steps, some of them side by side."""

    def __init__(self) -> None:
        """Begin now."""
        self._began = time.monotonic()
        self.found: dict[str, tuple[float, float]] = {}
        """By step: begin and end, in seconds from the beginning."""

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        """Take down one step."""
        started = time.monotonic()
        try:
            yield
        finally:
            self.found[name] = started - self._began, time.monotonic() - self._began

    def waited(self, name: str, seconds: float) -> None:
        """Take down a wait that has ended now."""
        now = time.monotonic() - self._began
        self.found[name] = now - seconds, now
